package einmal

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/engine"
	"github.com/einmal-operators/einmal/internal/engine/hook"
)

// Scheme returns the types of the operator: the built-in kinds and those of the option Scheme. Use it in the options of
// your own manager.
func (op *Operator) Scheme() *runtime.Scheme { return op.scheme }

// testable is an operator as package einmaltest uses it: an *Operator, or a type that embeds one.
type testable interface {
	observe(onAttempt func(engine.Attempt), log *slog.Logger) engine.Declared
	electIn(in engine.Elected) error
}

// The hook gives package einmaltest access to an operator: see docs/decisions/0020.
var _ = hook.Set(hook.Hooks{
	Observe: func(operator any, onAttempt func(engine.Attempt), log *slog.Logger) engine.Declared {
		return operator.(testable).observe(onAttempt, log) // A panic ends a test that is wrong.
	},
	Elect: func(operator any, in engine.Elected) error {
		return operator.(testable).electIn(in) // A panic ends a test that is wrong.
	},
	SetWatchSilence: func(operator any, silence time.Duration) { operator.(*Operator).deadlines.Silence = silence },
	Command: func(ctx context.Context, operator any, out, failures io.Writer, args ...string) int {
		return operator.(*Operator).commands().Main(ctx, args, out, failures)
	},
	Uninstall: func(ctx context.Context, operator any, config *rest.Config, out io.Writer, args ...string) error {
		return operator.(*Operator).commands().Uninstall(ctx, config, out, args...)
	},
})

// electIn makes the operator one of several replicas in a manager of package einmaltest.
func (op *Operator) electIn(in engine.Elected) error {
	return op.elect(cmp.Or(op.settings.Home, in.Home), in.Config, in.Options, kube.NewPace(max(in.Slower, 1)))
}

// observe calls onAttempt for each attempt of a handler, and sends the operator's log to the logger, if there is one.
func (op *Operator) observe(onAttempt func(engine.Attempt), log *slog.Logger) engine.Declared {
	op.settings.Witness = onAttempt
	if log != nil {
		op.logTo(log.Handler())
	}
	definitions, err := op.definitions()
	if err != nil {
		op.mistake(err)
		definitions = op.crds.Manifests()
	}
	declared := engine.Declared{Identity: op.settings.Identity, Scheme: op.scheme, CRDs: definitions}
	declared.Rights, _ = op.rights(op.settings.Namespaces) // Run reports the error as a registration mistake.
	for _, kind := range op.kinds {
		declared.Kinds = append(declared.Kinds, kind.kind.GVK)
	}
	for _, one := range op.everyKind() {
		for _, handler := range one.handlers() {
			declared.Handlers = append(declared.Handlers, handler.ID)
		}
	}
	op.eachRelated(func(_ string, one relatedKind) {
		if gvk, err := op.relatedGVK(one); err == nil && one.option == ownsOption { // Run reports the error.
			declared.Owned = append(declared.Owned, gvk.GroupKind())
		}
	})
	declared.Chosen = op.chosenNow
	return declared
}

// chosenNow returns the kinds that ForEvery selects now.
func (op *Operator) chosenNow(ctx context.Context, api discovery.DiscoveryInterface) ([]schema.GroupVersionKind, error) {
	watched, err := op.watched()
	if err != nil || len(watched.selections) == 0 {
		return nil, err
	}
	declared := make([]engine.Kind, len(op.kinds))
	for i, one := range op.kinds {
		declared[i] = one.kind
	}
	kinds, _, err := engine.Chosen(ctx, &kube.Catalogue{Discovery: api}, watched.selections, op.settings, declared)
	names := make([]schema.GroupVersionKind, len(kinds))
	for i, one := range kinds {
		names[i] = one.GVK
	}
	return names, err
}
