package einmal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/internal/engine"
	"github.com/einmal-operators/einmal/internal/engine/hook"
	"github.com/einmal-operators/einmal/internal/logging"
)

// RunOptions is where an operator is looked at. The zero value opens no ports.
type RunOptions struct {
	// HealthAddress is where /healthz and /readyz are served, such as :8081; "" is nowhere. The answer of /healthz is a JSON
	// object of what the probes tell: see OnProbe.
	HealthAddress string
	// MetricsAddress is where /metrics is served, such as :8080; "" is nowhere. Beside the metrics of controller-runtime it has
	// those of handlers, whose names begin with einmal_: docs/metrics.md lists them. In a manager of your own they are on its
	// /metrics.
	MetricsAddress string
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
	if err := errors.Join(op.check(), op.checkPlace()); err != nil {
		return err
	}
	mgr, err := op.manager(config, options)
	if err != nil {
		return err
	}
	driver, err := op.setUp(mgr)
	if err != nil {
		return err
	}
	driver.Election.Alone = options.SingleReplica
	if err := op.extend(mgr); err != nil {
		return err
	}
	if err := op.serveHealth(ctx, mgr, driver, options.HealthAddress); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the operator: %w", err)
	}
	return nil
}

func (op *Operator) manager(config *rest.Config, options RunOptions) (manager.Manager, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS = -1 // The API server's own fairness decides, not a client-side limit.
	}
	op.deadlines.Apply(config) // Before all else, so that the others see its errors.
	if err := op.follow(config); err != nil {
		return nil, err
	}
	stop := op.settings.Grace + engine.StopMargin + managerMargin
	managed := ctrl.Options{
		Scheme: op.scheme, Cache: op.CacheOptions(), NewCache: op.NewCache, Logger: logging.OfLibraries(op.settings.Log.Handler()),
		Metrics:                 server.Options{BindAddress: orNowhere(options.MetricsAddress)},
		HealthProbeBindAddress:  nowhere, // We serve it ourselves.
		GracefulShutdownTimeout: &stop,
	}
	if !options.SingleReplica {
		if err := op.elect(op.settings.Home, config, &managed, op.pace); err != nil {
			return nil, err
		}
	}
	mgr, err := ctrl.NewManager(config, managed)
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return mgr, nil
}

// follow looks how the watches fare of a manager with this configuration.
func (op *Operator) follow(config *rest.Config) error {
	counted, err := metrics.Register(crmetrics.Registry)
	if err != nil {
		return err
	}
	op.counted = counted
	op.streams = kube.NewStreams(func(resource, namespace, complaint string) {
		counted.Watch(op.settings.Identity, resource, namespace, complaint)
	})
	if len(op.settings.Namespaces.Names()) > 0 {
		op.streams.Spare = "namespaces" // Those which are named outright are served without looking which there are.
	}
	config.Wrap(op.streams.Follow)
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

// elect makes the manager one of several replicas, of which one acts at a time. Requests of the manager pass a fence,
// which rejects writes while the replica does not hold the Lease. The Lease is in the namespace home.
func (op *Operator) elect(home string, config *rest.Config, options *ctrl.Options, pace kube.Pace) error {
	if home == "" {
		return errors.New("leader election: no namespace for the Lease; outside of a pod, set one with the option StateNamespace or " +
			"--state-namespace, or run a single replica, with RunOptions.SingleReplica or --leader-elect=false")
	}
	lease, err := kube.NewLeadership(config, types.NamespacedName{Namespace: home, Name: op.settings.Identity}, pace)
	if err != nil {
		return err
	}
	lease.Failed = func(err error) {
		if !op.problems.Report(op.settings.Log, err) {
			op.settings.Log.Warn("cannot use the Lease, will retry", "lease", lease.Describe(), "error", err)
		}
	}
	config.Wrap(lease.Fence)
	options.LeaderElection, options.LeaderElectionReleaseOnCancel = true, true
	options.LeaderElectionResourceLockInterface = lease
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &pace.Lasts, &pace.Deadline, &pace.Retry
	op.lease = lease
	return nil
}

// join connects the operator to the leader election of its manager.
func (op *Operator) join(driver *engine.Operator, mgr manager.Manager) error {
	driver.Election = engine.Election{Elected: mgr.Elected(), Lease: op.lease}
	if op.lease == nil {
		return nil
	}
	op.lease.Idle(driver.Idle)
	driver.Election.Standby = &engine.Standby{Operator: driver}
	if err := mgr.Add(driver.Election.Standby); err != nil {
		return fmt.Errorf("add the standby to the manager: %w", err)
	}
	return nil
}

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
