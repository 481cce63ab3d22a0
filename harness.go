package einmal

import (
	"context"
	"log/slog"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/engine"
)

// Scheme knows the types of the operator: the built-in kinds and those of the option Scheme. It is for the options of a
// manager of your own.
func (op *Operator) Scheme() *runtime.Scheme { return op.scheme }

// Observe lets package einmaltest see each attempt of a handler, and sends the operator's log to the test. The type of
// its argument is internal: nobody else can call it.
func (op *Operator) Observe(witness func(engine.Attempt), log *slog.Logger) engine.Declared {
	op.settings.Witness, op.settings.Log = witness, log
	definitions, err := op.definitions()
	if err != nil {
		op.mistake(err)
		definitions = op.crds
	}
	declared := engine.Declared{Identity: op.settings.Identity, Scheme: op.scheme, CRDs: definitions}
	declared.Rights, _ = op.rights(op.settings.Namespaces) // What is wrong with them is a registration mistake.
	for _, kind := range op.kinds {
		declared.Kinds = append(declared.Kinds, kind.kind.GVK)
	}
	declared.Chosen = op.chosenNow
	return declared
}

// chosenNow are the kinds that are chosen now.
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
