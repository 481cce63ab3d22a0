package einmal

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/einmal-operators/einmal/internal/crd"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/internal/engine"
	"github.com/einmal-operators/einmal/internal/logging"
)

// The defaults of the options, and how long an outcome may be unsaved while another handler runs.
const (
	defaultWorkers         = 16
	defaultShutdownTimeout = 25 * time.Second
	defaultAttemptTimeout  = 10 * time.Minute
	defaultMargin          = 10 * time.Minute
	flushWindow            = 500 * time.Millisecond
	// managerMargin lets the engine end by itself when its last save hangs. Else the manager would report a failure.
	managerMargin = time.Second
)

// Operator is a set of handlers with one identity.
type Operator struct {
	settings engine.Settings
	scheme   *runtime.Scheme
	crds     crd.Definitions
	// undefined is why not all of crds could be read.
	undefined error
	// permissions are what handlers need beside handling; defaults are options of every handler.
	permissions permissions
	defaults    []option
	kinds       []*declaredKind
	selected    []*declaredSelection
	indexes     []*declaredIndex
	// activities are the handlers of the operator itself.
	activities activities
	mistakes   []error
	// ownsProcess: the operator is the program, so that the libraries' process-wide logs are its own.
	ownsProcess bool
	// deadlines bounds how long requests to the API server can hang.
	deadlines kube.Deadlines
	// client is what handlers get; it is there from SetupWithManager on.
	client client.Client
	// lease is what replicas are elected by; nil where they are not, or by another program's manager.
	lease *kube.Leadership
	// alarm receives the failures of watches from the cache. streams has the health of each watch, in a manager of the operator's own.
	alarm   engine.Alarm
	streams *kube.Streams
	counted *metrics.Metrics
	// problems logs why the API server cannot be used.
	problems kube.ProblemLog
	// tolerance keeps the cache working while some objects cannot be decoded.
	tolerance *kube.Tolerance
	// records knows which records another client has written last.
	records *kube.RecordOwners
	// pace is how the Lease is held.
	pace kube.Pace
	// ownLogger: the author has given a logger. ownFlags, runnables and httpHandlers are what the author adds to Main and Run.
	ownLogger bool
	// withoutEvents: no Kubernetes events are sent.
	withoutEvents bool
	ownFlags      *flag.FlagSet
	runnables     []manager.Runnable
	httpHandlers  map[string]http.Handler
}

// New makes an operator. Its identity is a domain name of your own, such as volumeclaims.example.com, and stays the
// same over all releases: the finalizer, the record and the field manager of the operator are named after it.
// Mistakes are reported by Run, SetupWithManager and Main, all at once.
func New(identity string, options ...OperatorOption) *Operator {
	op := &Operator{
		scheme:    runtime.NewScheme(),
		pace:      kube.NewPace(1),
		tolerance: kube.NewTolerance(),
		records:   kube.NewRecordOwners(identity),
		deadlines: kube.Deadlines{Request: kube.DefaultRequestTimeout, Silence: kube.DefaultWatchSilence},
		settings: engine.Settings{
			Identity: identity, Workers: defaultWorkers, Grace: defaultShutdownTimeout, AttemptTimeout: defaultAttemptTimeout,
			Margin: defaultMargin, Window: flushWindow, Home: podNamespace(),
		},
	}
	op.logTo(slog.Default().Handler())
	if err := clientscheme.AddToScheme(op.scheme); err != nil {
		op.mistake(fmt.Errorf("add the built-in kinds: %w", err))
	}
	known, err := optionsOf(options)
	if err != nil {
		op.mistake(err)
	}
	for _, one := range known {
		if err := one.operator(op); err != nil {
			op.mistake(err)
		}
	}
	return op
}

// logTo makes the operator log to a handler.
func (op *Operator) logTo(handler slog.Handler) { op.settings.Log = slog.New(logging.Bounded(handler)) }

func (op *Operator) mistake(err error) { op.mistakes = append(op.mistakes, err) }

// applyManager owns the fields that handlers apply: never those of the bookkeeping, which the identity itself owns.
func (op *Operator) applyManager() string { return op.settings.Identity + "/apply" }

// CacheOptions is what a manager needs for a small cache of the right scope: managed fields, which no handler reads, are
// dropped, only the operator's namespaces are watched, and a watch of metadata that ends leaves no goroutine behind. They go into the
// options of a manager of your own, together with NewCache; Run uses both itself.
func (op *Operator) CacheOptions() cache.Options {
	options := cache.Options{
		DefaultTransform:         op.records.Strip,
		DefaultWatchErrorHandler: op.watchFailed,
		NewInformer:              op.tolerance.NewInformer,
	}
	for _, namespace := range op.settings.Namespaces.Names() {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// watchFailed reports a list or watch that failed, which the cache tries again.
func (op *Operator) watchFailed(ctx context.Context, reflector *toolscache.Reflector, err error) {
	op.alarm.WatchFailed(ctx, reflector, err, op.problems.Report(op.settings.Log, err))
}

// podNamespace is the namespace of the pod that the process runs in, "" outside of one.
func podNamespace() string {
	name, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// SetupWithManager adds the operator to a manager of your own, beside other controllers. The operator starts and stops with the manager and
// follows its leader election. Its readiness and its probes are added to the manager's checks. All registration mistakes come back as one
// joined error. Build the manager with CacheOptions, with a scheme that holds the handled types, and with a GracefulShutdownTimeout at least four
// seconds above the option ShutdownTimeout.
//
// Run does the following, and a manager of your own does not:
//
//   - Write fence: Run checks before each write that the replica still holds the Lease. Here a replica that was suspended can write until
//     the manager notices that it has lost the Lease.
//   - Handover: Run releases the Lease after the last handler has returned, and a waiting replica has full caches. Here the manager decides
//     when it releases the Lease, and the operator fills its caches when the manager is elected.
//   - Readiness: that of Run also reports each watch that keeps failing or has fallen silent. Here it only says whether the kinds are served
//     and listed. A watch that fails later is logged, and has no metric.
//   - Requests: the option RequestTimeout applies to what the operator sends, and to the manager's cache if it is made with NewCache. It does
//     not apply to the manager's own client and its RESTMapper.
//   - Objects that do not fit their Go type: Run reports them and handles all other objects. Here, this needs a manager that is made with
//     CacheOptions and NewCache. Otherwise one such object stops all handlers of its kind.
//   - The verbs and flags of Main, the Lease that lets uninstall see the operator, and the options LeaseDuration, Flags,
//     Runnables and HTTPHandler.
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

// setUp adds the operator to a manager, without its checks.
func (op *Operator) setUp(mgr manager.Manager) (*engine.Operator, error) {
	if err := errors.Join(op.check(), op.checkPlace()); err != nil {
		return nil, err
	}
	spaces, err := op.spaces(mgr)
	if err != nil {
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
	counted, err := metrics.Register(crmetrics.Registry)
	if err != nil {
		return nil, err
	}
	driver := &engine.Operator{
		Settings: op.settings, Live: live, Cache: mgr.GetCache(), Discovery: api,
		Metrics: counted, Alarm: &op.alarm, Problems: &op.problems, Streams: op.streams, Spaces: spaces, Tolerance: cmp.Or(kube.ToleranceOf(mgr.GetCache()), op.tolerance),
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
