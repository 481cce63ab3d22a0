package einmal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/internal/engine"
	"github.com/einmal-operators/einmal/internal/logging"
)

// NewManager creates a manager for the operator and other controllers. It is ctrl.NewManager with what Run adds. Call it once for each
// operator, before SetupWithManager.
//
// The default of options.Scheme is the operator's scheme, see the option Scheme. Another scheme must hold the handled types. The manager's cache
// serves the namespaces of the option Namespaces, also to the other controllers. To cache others, set options.Cache.DefaultNamespaces. It must include
// those of the operator. Patterns of namespaces cannot be combined with it.
//
// With options.LeaderElection, the manager uses the operator's Lease: it has the name of the operator's identity, and is in
// options.LeaderElectionNamespace, by default in the namespace of the option StateNamespace. A replica that has lost the Lease cannot
// write, whichever controller sends the request, and neither can a replica that is not elected yet. The option LeaseDuration sets the times.
// Without options.LeaderElection, run one replica only.
//
// An error names each field of options that cannot be combined with this.
func (op *Operator) NewManager(config *rest.Config, options manager.Options) (manager.Manager, error) {
	if err := op.checkManager(options); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		config.QPS = -1 // The API server's own fairness decides, not a client-side limit.
	}
	op.deadlines.Apply(config) // Before all else, so that the others see its errors.
	if err := op.follow(config); err != nil {
		return nil, err
	}
	op.complete(&options)
	if options.LeaderElection {
		if err := op.elect(config, &options); err != nil {
			return nil, err
		}
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	return mgr, nil
}

// stopTime is how long a manager must wait for the operator at its end.
func (op *Operator) stopTime() time.Duration {
	return op.settings.Grace + declaration.StopMargin + managerMargin
}

// checkManager returns an error for each field of a manager's options that NewManager must set itself.
func (op *Operator) checkManager(options manager.Options) error {
	patterns := !op.settings.Namespaces.All() && !op.settings.Namespaces.Fixed()
	var wrong error
	for _, one := range []struct {
		set           bool
		field, remedy string
	}{
		{options.NewCache != nil, "NewCache", "leave it out: the operator needs a cache of its own kind"},
		{options.Cache.NewInformer != nil, "Cache.NewInformer", "leave it out: the operator needs informers of its own kind"},
		{patterns && options.Cache.DefaultNamespaces != nil, "Cache.DefaultNamespaces", "leave it out, or name the namespaces of the option Namespaces in full"},
		{options.LeaderElectionResourceLockInterface != nil, "LeaderElectionResourceLockInterface", "leave it out: the operator's Lease protects its writes"},
		{options.LeaderElectionID != "" && options.LeaderElectionID != op.settings.Identity, "LeaderElectionID", "leave it out: the Lease has the name of the operator's identity"},
		{options.LeaseDuration != nil || options.RenewDeadline != nil || options.RetryPeriod != nil, "LeaseDuration, RenewDeadline or RetryPeriod", "use the option einmal.LeaseDuration"},
		{
			options.GracefulShutdownTimeout != nil && *options.GracefulShutdownTimeout >= 0 && *options.GracefulShutdownTimeout < op.stopTime(), "GracefulShutdownTimeout",
			fmt.Sprintf("leave it out, or set at least %s: the option ShutdownTimeout and some seconds to save", op.stopTime()),
		},
	} {
		if one.set {
			wrong = errors.Join(wrong, fmt.Errorf("operator %s: the manager's option %s: %s", op.settings.Identity, one.field, one.remedy))
		}
	}
	return wrong
}

// complete sets what the operator needs in the options of a manager.
func (op *Operator) complete(options *manager.Options) {
	if options.Scheme == nil {
		options.Scheme = op.scheme
	}
	if options.Logger.GetSink() == nil {
		options.Logger = logging.OfLibraries(op.settings.Log.Handler())
	}
	if options.GracefulShutdownTimeout == nil {
		stop := op.stopTime()
		options.GracefulShutdownTimeout = &stop
	}
	options.NewCache = op.newCache
	options.Cache.NewInformer = op.tolerance.NewInformer
	options.Cache.DefaultWatchErrorHandler = op.watchFailedToo(options.Cache.DefaultWatchErrorHandler)
	options.Cache.DefaultTransform = op.stripToo(options.Cache.DefaultTransform)
	options.Cache.ByObject = maps.Clone(options.Cache.ByObject)
	for object, by := range options.Cache.ByObject {
		if by.Transform != nil {
			by.Transform = op.stripToo(by.Transform)
			options.Cache.ByObject[object] = by
		}
	}
}

// stripToo returns the transformation of a cache that drops managed fields, which no handler reads, before a transformation of the author.
func (op *Operator) stripToo(then toolscache.TransformFunc) toolscache.TransformFunc {
	if then == nil {
		return op.records.Strip
	}
	return func(object any) (any, error) {
		stripped, err := op.records.Strip(object)
		if err != nil {
			return nil, err
		}
		return then(stripped)
	}
}

// watchFailedToo reports a list or watch that failed, which the cache tries again. It calls the author's function too.
func (op *Operator) watchFailedToo(then toolscache.WatchErrorHandlerWithContext) toolscache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		op.informers.WatchFailed(ctx, reflector, err, op.problems.Report(op.settings.Log, err))
		if then != nil {
			then(ctx, reflector, err)
		}
	}
}

// newCache creates the cache of a manager. If the author has not chosen its namespaces, it serves those of the operator, and one that may
// not be watched does not block the others.
func (op *Operator) newCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	options.HTTPClient = op.deadlines.Client(options.HTTPClient)
	options.HTTPClient.Transport = op.tolerance.Wrap(options.HTTPClient.Transport)
	if options.DefaultNamespaces != nil || op.settings.Namespaces.All() {
		made, err := cache.New(config, options)
		if err != nil {
			return nil, fmt.Errorf("create the cache: %w", err)
		}
		return op.tolerance.Cache(made), nil
	}
	namespaced, err := kube.NewNamespacedCache(config, options, op.settings.Namespaces, op.settings.Log)
	if err != nil {
		return nil, err
	}
	namespaced.Closed = op.closed
	return op.tolerance.Cache(namespaced), nil
}

// closed removes the watch health and metrics of a namespace that is gone.
func (op *Operator) closed(namespace string) {
	for _, resource := range op.watchHealth.ForgetNamespace(namespace) {
		op.counted.UnwatchedIn(op.settings.Identity, resource, namespace)
	}
}

// follow observes the watches of a manager with this configuration.
func (op *Operator) follow(config *rest.Config) error {
	counted, err := metrics.Register(crmetrics.Registry)
	if err != nil {
		return err
	}
	op.counted = counted
	op.watchHealth = kube.NewWatchHealth(func(resource, namespace, complaint string) {
		counted.Watch(op.settings.Identity, resource, namespace, complaint)
	})
	if len(op.settings.Namespaces.Names()) > 0 {
		op.watchHealth.Spare = "namespaces" // Those which are named outright are served without looking which there are.
	}
	config.Wrap(op.watchHealth.Follow)
	return nil
}

// elect makes the manager one of several replicas, of which one acts at a time. Requests of the manager pass a fence,
// which rejects writes while the replica does not hold the Lease.
func (op *Operator) elect(config *rest.Config, options *manager.Options) error {
	place := types.NamespacedName{Namespace: cmp.Or(options.LeaderElectionNamespace, op.settings.Home), Name: op.settings.Identity}
	if place.Namespace == "" {
		return errors.New("leader election: no namespace for the Lease; outside of a pod, set one with the option StateNamespace, " +
			"--state-namespace or the manager's LeaderElectionNamespace, or run a single replica, with RunOptions.SingleReplica or --leader-elect=false")
	}
	lease, err := kube.NewLeadership(config, place, op.leaseTiming)
	if err != nil {
		return err
	}
	lease.Failed = func(err error) {
		if !op.problems.Report(op.settings.Log, err) {
			op.settings.Log.Warn("cannot use the Lease, will retry", "lease", lease.Describe(), "error", err)
		}
	}
	config.Wrap(lease.Fence)
	options.LeaderElectionReleaseOnCancel, options.LeaderElectionResourceLockInterface = true, lease
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = &op.leaseTiming.Lasts, &op.leaseTiming.Deadline, &op.leaseTiming.Retry
	op.lease = lease
	return nil
}

// SetupWithManager adds the operator to a manager that its NewManager has created, beside other controllers. The operator starts and stops
// with the manager. Its readiness and its probes are added to the manager's checks. All registration mistakes come back as one joined error.
//
// All that Run protects is protected here too. The options Flags, ManagerOptions and SetupManager have no effect: they are for Main and Run.
func (op *Operator) SetupWithManager(mgr manager.Manager) error {
	driver, err := op.setUp(mgr)
	if err != nil {
		return err
	}
	if len(op.activities.probes) > 0 {
		if err := mgr.AddHealthzCheck(op.settings.Identity, op.health(driver).CheckProbes); err != nil {
			return fmt.Errorf("add the health check: %w", err)
		}
	}
	if err := mgr.AddReadyzCheck(op.settings.Identity, op.health(driver).CheckReady); err != nil {
		return fmt.Errorf("add the readiness check: %w", err)
	}
	return nil
}

// checkMade returns an error if a manager is not one that NewManager has created for the operator, or cannot read a handled kind.
func (op *Operator) checkMade(mgr manager.Manager) error {
	if kube.ToleranceOf(mgr.GetCache()) != op.tolerance {
		return fmt.Errorf("operator %s: the manager must be one that NewManager of this operator has created: call it instead of ctrl.NewManager", op.settings.Identity)
	}
	for _, declared := range op.kinds {
		if _, untyped := declared.kind.New().(runtime.Unstructured); !untyped && !mgr.GetScheme().Recognizes(declared.kind.GVK) {
			return fmt.Errorf("operator %s: the manager's scheme lacks the kind %s: leave Scheme out of its options, or add the kind to it",
				op.settings.Identity, declared.kind.GVK.Kind)
		}
	}
	return nil
}

// setUp adds the operator to a manager, without its checks.
func (op *Operator) setUp(mgr manager.Manager) (*engine.Operator, error) {
	if err := errors.Join(op.check(), op.checkPlace()); err != nil {
		return nil, err
	}
	if err := op.checkMade(mgr); err != nil {
		return nil, err
	}
	through := op.deadlines.Client(mgr.GetHTTPClient())
	through.Transport = op.tolerance.Wrap(through.Transport)
	config := rest.CopyConfig(mgr.GetConfig())
	config.WarningHandler, config.WarningHandlerWithContext = nil, kube.NewWarnings(op.settings.Log)
	live, err := client.NewWithWatch(config, client.Options{
		HTTPClient: through, Scheme: op.scheme, Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	api, err := discovery.NewDiscoveryClientForConfigAndClient(config, through)
	if err != nil {
		return nil, fmt.Errorf("make the discovery client: %w", err)
	}
	op.informers.Cache = mgr.GetCache()
	driver := &engine.Operator{
		Settings: op.settings, Live: live, Cache: mgr.GetCache(), Discovery: api,
		Metrics: op.counted, Informers: &op.informers, Problems: &op.problems, WatchHealth: op.watchHealth,
		NamespacedCache: kube.NamespacedCacheOf(mgr.GetCache()), Tolerance: op.tolerance,
		RecordOwners: op.records,
		Startup:      op.activities.startup, Cleanup: op.activities.cleanup,
	}
	if !op.withoutEvents {
		if driver.EventSink, err = kube.NewEventSink(config, through); err != nil {
			return nil, err
		}
	}
	for _, declared := range op.kinds {
		driver.Kinds = append(driver.Kinds, declared.kind)
	}
	watched, err := op.watched()
	if err != nil {
		return nil, err
	}
	driver.Relations, driver.Indexes, driver.Selections = watched.relations, watched.indexes, watched.selections
	op.client = driver.Client()
	if err := op.join(driver, mgr); err != nil {
		return nil, err
	}
	if err := mgr.Add(driver); err != nil {
		return nil, fmt.Errorf("add the operator to the manager: %w", err)
	}
	return driver, nil
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
