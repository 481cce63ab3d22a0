package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/logging"
)

// runHelp is printed above the flags.
const runHelp = `Handles objects until SIGINT or SIGTERM. Handlers that run then finish; a second signal ends the process at once.
The log goes to standard error.

The exit code is 0 after a stop, 1 after a failure, and 2 for a wrong command line.
`

// runFlags are the flags of the command run.
type runFlags struct {
	RunOptions
	connectionFlags

	op *Operator

	logFormat, logLevel string
	verbose             bool
	leaderElect         bool
}

func (*runFlags) help() string { return runHelp }

func (f *runFlags) declare(set *flag.FlagSet) {
	f.declareServer(set)
	set.Var(&f.namespaces, "namespace", "`name` or pattern of namespaces to serve, such as app-*,!app-x*; can be given several times; the default is the option Namespaces of the operator, or all namespaces")
	set.StringVar(&f.stateNamespace, "state-namespace", "", "`namespace` of the operator's own ConfigMap, Lease and Secret; the default is the pod's own namespace, and outside of a pod that of the kubeconfig's context")
	set.BoolVar(&f.leaderElect, "leader-elect", true, "let one of several replicas act at a time; with false, run one replica only: a second one would call the same handlers")
	set.StringVar(&f.logFormat, "log-format", "", "`format` of the log: text or json; the default is text, or the operator's own logger")
	set.StringVar(&f.logLevel, "log-level", "", "lowest `level` of the log: debug, info, warn or error; the default is info")
	set.BoolVar(&f.verbose, "v", false, "log in detail: -log-level debug")
	const where = "; the default listens on all interfaces in a pod and on loopback elsewhere"
	set.StringVar(&f.HealthAddress, "health-probe-bind-address", defaultAddress("8081"), "`address` of /healthz and /readyz, 0 for none"+where)
	set.StringVar(&f.MetricsAddress, "metrics-bind-address", defaultAddress("8080"), "`address` of /metrics, 0 for none"+where)
	set.StringVar(&f.ProfilingAddress, "pprof-bind-address", "0", "`address` on loopback of /debug/pprof, such as 127.0.0.1:6060, 0 for none: who reaches it can read profiles and the command line")
	if f.op != nil {
		declareOwn(f.op.Flags, set)
	}
}

// defaultAddress returns where a port listens: on all interfaces in a pod, so that probes and scrapes reach it, and on
// loopback elsewhere.
func defaultAddress(port string) string {
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" { // The kubelet sets it in every container.
		return ":" + port
	}
	return "127.0.0.1:" + port
}

func (f *runFlags) own(name string) bool {
	return f.op != nil && f.op.Flags != nil && f.op.Flags.Lookup(name) != nil
}

func (f *runFlags) validate() error {
	if !slices.Contains([]string{"", "text", "json"}, f.logFormat) {
		return &flagError{name: "log-format", value: f.logFormat, reason: "must be text or json"}
	}
	if !slices.Contains([]string{"", "debug", "info", "warn", "error"}, f.logLevel) {
		return &flagError{name: "log-level", value: f.logLevel, reason: "must be debug, info, warn or error"}
	}
	if err := CheckLoopback(f.ProfilingAddress); err != nil {
		return &flagError{name: "pprof-bind-address", value: f.ProfilingAddress, reason: err.Error()}
	}
	if f.op != nil && f.op.OwnLogger && (f.logFormat != "" || f.logLevel != "" || f.verbose) {
		return errors.New("flags -log-format, -log-level and -v: this operator has a logger of its own (option Logger); leave out these flags, and do not set " +
			"EINMAL_LOG_FORMAT, EINMAL_LOG_LEVEL and EINMAL_V")
	}
	return f.connectionFlags.validate()
}

// CheckLoopback returns an error if an address can be reached from outside of the machine or the pod. It accepts "" and 0, which are nowhere.
func CheckLoopback(address string) error {
	if address == "" || address == "0" {
		return nil
	}
	const remedy = "must be a port on loopback, such as 127.0.0.1:6060, since profiles show what the process works with"
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s: %w", remedy, err)
	}
	if parsed := net.ParseIP(host); host != "localhost" && !parsed.IsLoopback() {
		return errors.New(remedy)
	}
	return nil
}

func (op *Operator) commandRun(ctx context.Context, args []string, out, failures io.Writer) int {
	flags := runFlags{op: op}
	if code, ok := op.begin("run", &flags, args, out, failures); !ok {
		return code
	}
	op.logAs(failures, flags)
	config, err := op.connect(&flags.connectionFlags)
	if err != nil {
		fail(failures, err)
		return exitFailed
	}
	if flags.namespaces.given() {
		op.Settings.Namespaces = flags.namespaces.parsed
	}
	flags.SingleReplica = !flags.leaderElect
	op.Settings.Log.Info("starting", "operator", op.Settings.Identity, "version", version(), "server", config.Host,
		"health", flags.HealthAddress, "metrics", flags.MetricsAddress)
	go op.warnElsewhere(ctx, config)
	if err := op.runShown(ctx, config, flags.RunOptions); err != nil {
		log := op.Settings.Log
		if errors.Is(err, syscall.EADDRINUSE) {
			log = log.With("remedy", "name other addresses with --health-probe-bind-address, --metrics-bind-address and --pprof-bind-address")
		}
		log.Error("the operator failed", "error", err)
		return exitFailed
	}
	op.Settings.Log.Info("stopped")
	return exitOK
}

// runShown runs the operator. Without leader election it holds the Lease nevertheless, so that uninstall sees that the
// operator runs.
func (op *Operator) runShown(ctx context.Context, config *rest.Config, options RunOptions) error {
	if !options.SingleReplica {
		return op.Run(ctx, config, options)
	}
	lease, err := kube.NewLeadership(config, op.leasePlace(), op.LeaseTiming)
	if err != nil {
		return err
	}
	var once sync.Once
	lease.Failed = func(err error) {
		if !apierrors.IsForbidden(err) && op.Problems.Report(op.Settings.Log, err) {
			return
		}
		once.Do(func() {
			op.Settings.Log.Warn("cannot hold the Lease, uninstall cannot see this replica", "lease", lease.Describe(), "error", err,
				"remedy", "grant the permissions that the rbac command prints, with kubectl apply -f -")
		})
	}
	release, err := lease.Show(ctx)
	if err != nil {
		return err
	}
	defer release() // No handler runs any more.
	return op.Run(ctx, config, options)
}

// leasePlace is where the operator's Lease is. A single replica that knows no namespace of its own keeps it in the namespace default.
func (op *Operator) leasePlace() types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(op.Settings.Home, metav1.NamespaceDefault), Name: op.Settings.Identity}
}

// warnElsewhere warns if a process holds the operator's Lease in another namespace: then no election is between the two. An
// account with the rights that rbac prints cannot look there, which is no problem: its namespace is the right one.
func (op *Operator) warnElsewhere(ctx context.Context, config *rest.Config) {
	if err := op.findElsewhere(ctx, config); err != nil {
		op.Settings.Log.Debug("cannot look for replicas in other namespaces", "error", err)
	}
}

func (op *Operator) findElsewhere(ctx context.Context, config *rest.Config) error {
	live, err := client.New(config, client.Options{Scheme: op.Scheme})
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	place := op.leasePlace()
	leases, err := kube.ListNamed(ctx, live, kube.LeaseKind(), types.NamespacedName{Name: place.Name})
	if err != nil {
		return err
	}
	for _, lease := range leases {
		key := client.ObjectKeyFromObject(&lease)
		if key == place {
			continue
		}
		holder, _, err := kube.AwaitHolder(ctx, live, key, func(string) {})
		if err != nil {
			return err
		}
		if holder != "" {
			op.Settings.Log.Warn("another replica of this operator runs with another state namespace: both call handlers for the same objects",
				"lease", key, "holder", holder, "remedy", "stop one of them, or set --state-namespace "+key.Namespace)
		}
	}
	return nil
}

// logAs sets the operator's log and those of the libraries.
func (op *Operator) logAs(out io.Writer, flags runFlags) {
	if !op.OwnLogger {
		op.Settings.Log = slog.New(logging.Bounded(flags.logHandler(out)))
	}
	if op.OwnsProcess {
		ctrl.SetLogger(logging.OfLibraries(op.Settings.Log.Handler()))
		klog.SetLogger(logging.OfLibraries(op.Settings.Log.Handler()))
	}
}

// logHandler returns the handler that the flags describe.
func (f *runFlags) logHandler(out io.Writer) slog.Handler {
	level := map[string]slog.Level{"debug": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError}[f.logLevel]
	if f.verbose {
		level = slog.LevelDebug
	}
	options := &slog.HandlerOptions{Level: level}
	if f.logFormat == "json" {
		return slog.NewJSONHandler(out, options)
	}
	return slog.NewTextHandler(out, options)
}
