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
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/einmal-operators/einmal/internal/cli"
	"github.com/einmal-operators/einmal/internal/crd"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/internal/engine"
	"github.com/einmal-operators/einmal/internal/logging"
	"github.com/einmal-operators/einmal/internal/register"
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

// NewCache creates the cache of a manager of your own, limited to the namespaces of the option Namespaces. Set it as
// NewCache in the manager's options, together with CacheOptions. It is required if Namespaces has patterns. With it, a
// namespace that the operator may not watch does not block the others. Other controllers of the manager see these
// namespaces only. Without the option Namespaces, it is the cache of controller-runtime.
//
// An object that does not fit the Go type of its kind does not stop the cache. Get returns an error for it, and List
// leaves it out.
//
// The list requests of the cache have the timeout of the option RequestTimeout. A watch whose connection is dead is
// opened again within three minutes.
func (op *Operator) NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	if options.HTTPClient == nil {
		through, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("create the client of the cache: %w", err)
		}
		options.HTTPClient = through
	}
	options.HTTPClient = op.deadlines.Client(options.HTTPClient)
	options.HTTPClient.Transport = op.tolerance.Wrap(options.HTTPClient.Transport)
	if op.settings.Namespaces.All() {
		made, err := cache.New(config, options)
		if err != nil {
			return nil, fmt.Errorf("create the cache: %w", err)
		}
		return op.tolerance.Cache(made), nil
	}
	spaces, err := kube.NewSpaces(config, options, op.settings.Namespaces, op.settings.Log)
	if err != nil {
		return nil, err
	}
	spaces.Closed = op.closed
	return op.tolerance.Cache(spaces), nil
}

// closed removes the watch health and metrics of a namespace that is gone.
func (op *Operator) closed(namespace string) {
	for _, resource := range op.streams.ForgetNamespace(namespace) {
		op.counted.UnwatchedIn(op.settings.Identity, resource, namespace)
	}
}

// spaces returns the namespace caches of a manager. It returns nil if the manager watches all namespaces, or has its
// own cache for fixed names.
func (op *Operator) spaces(mgr manager.Manager) (*kube.Spaces, error) {
	spaces, served := kube.SpacesOf(mgr.GetCache()), op.settings.Namespaces
	if spaces == nil && !served.All() && !served.Fixed() {
		return nil, fmt.Errorf("option Namespaces: the manager's cache does not support the pattern %s: create the manager with NewCache: op.NewCache", served)
	}
	return spaces, nil
}

// declaredKind is a kind as it was declared.
type declaredKind struct {
	kind   engine.Kind
	goType reflect.Type
	// related lists the kinds whose objects trigger its handlers.
	related []relatedKind
	// applies is true if a handler of the kind has the option Applies.
	applies bool
}

// longestIdentity keeps all names that contain the identity within the limit of Kubernetes for field managers.
const longestIdentity = 100

// check returns all registration mistakes. It does not need an API server.
func (op *Operator) check() error {
	found := append([]error(nil), op.mistakes...)
	identity := op.settings.Identity
	if len(validation.IsDNS1123Subdomain(identity)) > 0 || !strings.Contains(identity, ".") || len(identity) > longestIdentity {
		found = append(found, fmt.Errorf("identity %q: must be a domain name that you own, in lower case, with at least one dot and at most %d characters, such as claims.example.com",
			identity, longestIdentity))
	}
	found = append(found, op.activities.check(), cli.CheckFlags(op.ownFlags))
	if len(op.everyKind()) == 0 {
		found = append(found, errors.New("no kinds: declare at least one with einmal.For or einmal.ForEvery"))
	}
	seen := map[string]bool{}
	for _, declared := range op.kinds {
		name := declared.kind.GVK.String()
		if seen[name] {
			found = append(found, fmt.Errorf("kind %s is declared twice: declare all its handlers on the Kind that the first For returns", name))
		}
		seen[name] = true
		found = append(found, declared.check())
	}
	found = append(found, op.checkSelected())
	_, err := op.rights(op.settings.Namespaces)
	_, unwatched := op.watched()
	return errors.Join(append(found, err, unwatched, op.checkIndexes())...)
}

// checkPlace returns an error if the state namespace is missing. It is separate from check, because a flag of the verb
// run can set it.
func (op *Operator) checkPlace() error {
	secrets := false
	for _, declared := range op.kinds {
		secrets = secrets || declared.kind.Secret() && declared.kind.Recorded()
	}
	for _, declared := range op.selected {
		secrets = secrets || declared.mayBeSecrets() && declared.kind.Recorded()
	}
	if secrets && op.settings.Home == "" {
		return errors.New("kind Secret: no namespace for the digest key; " +
			"outside of a pod, set one with the option StateNamespace or --state-namespace")
	}
	return nil
}

// check returns all mistakes in the declarations of the kind's handlers.
func (d *declaredKind) check() error {
	declared := register.Kind{Name: d.kind.GVK.Kind, Type: d.goType, Handlers: d.handlers()}
	return declared.Check() //nolint:wrapcheck // It names each handler.
}
