package einmal

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal/internal/cli"
	"github.com/einmal-operators/einmal/internal/crd"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/internal/kindloop"
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
	settings declaration.Settings
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
	// informers are those of the cache, whose failures of watches they receive. watchHealth has the health of each watch.
	informers   kindloop.Informers
	watchHealth *kube.WatchHealth
	counted     *metrics.Metrics
	// problems logs why the API server cannot be used.
	problems kube.ProblemLog
	// tolerance keeps the cache working while some objects cannot be decoded.
	tolerance *kube.Tolerance
	// records knows which records another client has written last.
	records *kube.RecordOwners
	// leaseTiming is how the Lease is held.
	leaseTiming kube.LeaseTiming
	// ownLogger: the author has given a logger. ownFlags, managerChanges and managerSetups are what the author adds to Main and Run.
	ownLogger bool
	// withoutEvents: no Kubernetes events are sent.
	withoutEvents  bool
	ownFlags       *flag.FlagSet
	managerChanges []func(*manager.Options)
	managerSetups  []func(manager.Manager) error
}

// New makes an operator. Its identity is a domain name of your own, such as volumeclaims.example.com, and stays the
// same over all releases: the finalizer, the record and the field manager of the operator are named after it.
// Mistakes are reported by Run, SetupWithManager and Main, all at once.
func New(identity string, options ...OperatorOption) *Operator {
	op := &Operator{
		scheme:      runtime.NewScheme(),
		leaseTiming: kube.NewLeaseTiming(1),
		tolerance:   kube.NewTolerance(),
		records:     kube.NewRecordOwners(identity),
		deadlines:   kube.Deadlines{Request: kube.DefaultRequestTimeout, Silence: kube.DefaultWatchSilence},
		settings: declaration.Settings{
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

// applyManager returns the field manager of the fields that handlers apply: never those of the bookkeeping, which the identity itself owns.
func applyManager(identity string) string { return identity + "/apply" }

// podNamespace is the namespace of the pod that the process runs in, "" outside of one.
func podNamespace() string {
	name, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// declaredKind is a kind as it was declared.
type declaredKind struct {
	kind   declaration.Kind
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
