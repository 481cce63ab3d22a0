package einmal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/einmal-operators/einmal/internal/cli"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/engine/hook"
)

// RunOptions is where an operator is looked at. The zero value opens no ports.
type RunOptions struct {
	// HealthAddress is where /healthz and /readyz are served, such as :8081; "" is nowhere. The answer of /healthz is a JSON
	// object of what the probes tell: see OnProbe.
	HealthAddress string
	// MetricsAddress is where /metrics is served, such as :8080; "" is nowhere. Beside the metrics of controller-runtime it has
	// those of handlers, whose names begin with einmal_: docs/metrics.md lists them.
	MetricsAddress string
	// ProfilingAddress is where net/http/pprof serves /debug/pprof; "" is nowhere. It must be on loopback, such as 127.0.0.1:6060: Run returns an error
	// otherwise. In a pod, kubectl port-forward reaches it.
	ProfilingAddress string
	// SingleReplica switches leader election off: only one replica may run then. By default one of several replicas acts at a time: the one that
	// holds the Lease named after the operator's identity, in the namespace of the option StateNamespace, which Run needs then. The others
	// wait with full caches. A replica that stops hands over when its handlers have returned; after a replica that has crashed or hangs
	// another one takes over, by default within 20 seconds. A replica that loses the Lease changes nothing any more, and Run returns an error: end
	// the process then.
	SingleReplica bool
}

// Run runs the operator until the context ends; then no handler starts any more, running ones get the time of the
// option ShutdownTimeout, cleanup handlers are called, and Run returns nil. All registration mistakes come back as one joined error before anything is asked of
// the API server.
func (op *Operator) Run(ctx context.Context, config *rest.Config, options RunOptions) error {
	if err := errors.Join(op.check(), op.checkPlace(), checkProfiling(options.ProfilingAddress)); err != nil {
		return err
	}
	managed := manager.Options{
		Metrics:        server.Options{BindAddress: orNowhere(options.MetricsAddress)},
		LeaderElection: !options.SingleReplica, HealthProbeBindAddress: nowhere, // We serve it ourselves.
		PprofBindAddress: orNowhere(options.ProfilingAddress),
	}
	for _, change := range op.managerChanges {
		change(&managed)
	}
	mgr, err := op.NewManager(config, managed)
	if err != nil {
		return err
	}
	driver, err := op.setUp(mgr)
	if err != nil {
		return err
	}
	driver.Election.Alone = options.SingleReplica
	for _, setup := range op.managerSetups {
		if err := setup(mgr); err != nil {
			return fmt.Errorf("option SetupManager: %w", err)
		}
	}
	if err := op.serveHealth(ctx, mgr, driver, options.HealthAddress); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the operator: %w", err)
	}
	return nil
}

func checkProfiling(address string) error {
	if err := cli.CheckLoopback(address); err != nil {
		return fmt.Errorf("RunOptions.ProfilingAddress %q: %w", address, err)
	}
	return nil
}

// nowhere is what controller-runtime understands as no listener.
const nowhere = "0"

// orNowhere turns "" into what controller-runtime understands as no listener.
func orNowhere(address string) string {
	if address == "" {
		return nowhere
	}
	return address
}

// Scheme returns the types of the operator: the built-in kinds and those of the option Scheme. Use it in the options of
// your own manager.
func (op *Operator) Scheme() *runtime.Scheme { return op.scheme }

// testable is an operator as package einmaltest uses it: an *Operator, or a type that embeds one.
type testable interface {
	observe(onAttempt func(declaration.Attempt), log *slog.Logger) declaration.Operator
	stretchElection(times int)
}

// The hook gives package einmaltest access to an operator: see docs/decisions/0020.
var _ = hook.Set(hook.Hooks{
	Observe: func(operator any, onAttempt func(declaration.Attempt), log *slog.Logger) declaration.Operator {
		return operator.(testable).observe(onAttempt, log) // A panic ends a test that is wrong.
	},
	StretchElection: func(operator any, times int) { operator.(testable).stretchElection(times) },
	SetWatchSilence: func(operator any, silence time.Duration) { operator.(*Operator).deadlines.Silence = silence },
	Command: func(ctx context.Context, operator any, out, failures io.Writer, args ...string) int {
		return operator.(*Operator).commands().Main(ctx, args, out, failures)
	},
	Uninstall: func(ctx context.Context, operator any, config *rest.Config, out io.Writer, args ...string) error {
		return operator.(*Operator).commands().Uninstall(ctx, config, out, args...)
	},
})

// stretchElection multiplies the times of the election.
func (op *Operator) stretchElection(times int) { op.leaseTiming = kube.NewLeaseTiming(times) }

// observe calls onAttempt for each attempt of a handler, and sends the operator's log to the logger, if there is one.
func (op *Operator) observe(onAttempt func(declaration.Attempt), log *slog.Logger) declaration.Operator {
	op.settings.OnAttempt = onAttempt
	if log != nil {
		op.logTo(log.Handler())
	}
	definitions, err := op.definitions()
	if err != nil {
		op.mistake(err)
		definitions = op.crds.Manifests()
	}
	declared := declaration.Operator{Identity: op.settings.Identity, Scheme: op.scheme, CRDs: definitions}
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
	handled := make([]declaration.Kind, len(op.kinds))
	for i, one := range op.kinds {
		handled[i] = one.kind
	}
	served, _, err := (&kube.DiscoveryCache{Discovery: api}).Read(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // It names the request.
	}
	kinds, _ := declaration.Chosen(watched.selections, op.settings, served, handled)
	names := make([]schema.GroupVersionKind, len(kinds))
	for i, one := range kinds {
		names[i] = one.GVK
	}
	return names, nil
}
