package einmal

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The exit codes of Main.
const (
	exitStopped = 0 // stopped when told to
	exitFailed  = 1 // something failed
	exitUsage   = 2 // the command line is wrong
)

// Main is the main function of an operator's binary, with these verbs:
//
//	run       handle objects until SIGINT or SIGTERM; running handlers then finish. A second signal ends at once.
//	crds      print the operator's CustomResourceDefinitions, for kubectl apply -f -
//	rbac      print the roles that it needs, for kubectl apply -f -
//	uninstall take the operator's finalizers and records out of all objects, when it is stopped; with a dry run
//	version   print the version
//
// It exits with 0 after a stop, 1 after a failure, 2 after a wrong command line.
func (op *Operator) Main() {
	op.ownsProcess = true
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, cancel) // From then on a second signal ends the process.
	os.Exit(op.command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// command runs one verb and returns the exit code.
func (op *Operator) command(ctx context.Context, args []string, out, failures io.Writer) int {
	verb := ""
	if len(args) > 0 {
		verb = args[0]
	}
	switch verb {
	case "run":
		return op.commandRun(ctx, args[1:], failures)
	case "crds":
		return op.commandCRDs(out, failures)
	case "rbac":
		return op.commandRBAC(args[1:], out, failures)
	case "uninstall":
		return op.commandUninstall(ctx, args[1:], out, failures)
	case "version":
		_, _ = fmt.Fprintln(out, version())
		return exitStopped
	case "help", "-h", "-help", "--help":
		op.usage(out)
		return exitStopped
	default:
		if verb != "" {
			_, _ = fmt.Fprintf(failures, "unknown verb %q\n", verb)
		}
		op.usage(failures)
		return exitUsage
	}
}

func (op *Operator) usage(out io.Writer) {
	name := filepath.Base(os.Args[0])
	_, _ = fmt.Fprintf(out, `%[1]s is the operator %[2]s.

  %[1]s run [flags]   handle objects until stopped (%[1]s run -h lists the flags)
  %[1]s crds          print its CustomResourceDefinitions: %[1]s crds | kubectl apply -f -
  %[1]s rbac [flags]  print the roles that it needs, and no more: %[1]s rbac | kubectl apply -f -
  %[1]s uninstall [flags]
                take its finalizers and records out of all objects (%[1]s uninstall -h says more)
  %[1]s version       print its version
`, name, op.settings.Identity)
}

func (op *Operator) commandCRDs(out, failures io.Writer) int {
	definitions, err := op.definitions()
	if err != nil {
		_, _ = fmt.Fprintln(failures, err)
		return exitFailed
	}
	if len(definitions) == 0 {
		_, _ = fmt.Fprintln(failures, "this operator has no CustomResourceDefinitions: give them to einmal.New with einmal.CRDs")
		return exitFailed
	}
	for _, document := range documents(definitions) {
		_, _ = fmt.Fprintf(out, "---\n%s\n", document)
	}
	return exitStopped
}

// runFlags are the flags of the verb run.
type runFlags struct {
	RunOptions
	kubeconfig, context, logFormat string
	stateNamespace                 string
	namespaces                     namespaceFlag
	verbose                        bool
}

func (f *runFlags) parse(args []string, failures io.Writer) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(failures)
	f.connection(flags)
	flags.Var(&f.namespaces, "namespace", "`name` or pattern of namespaces to serve, such as app-*,!app-x*; can be given several times; the default is what the operator was made with, mostly all")
	flags.StringVar(&f.stateNamespace, "state-namespace", "", "`namespace` of the ConfigMap with the operator's watermarks, of the Lease of its replicas, and of the key for what it records of Secrets; the default is the pod's own, outside of a pod the kubeconfig's")
	flags.BoolVar(&f.LeaderElection, "leader-elect", true, "let one of several replicas act at a time; with false there must be one replica only")
	flags.StringVar(&f.logFormat, "log-format", "text", "`text` or json")
	flags.BoolVar(&f.verbose, "v", false, "log in detail")
	flags.StringVar(&f.HealthAddress, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0 for none")
	flags.StringVar(&f.MetricsAddress, "metrics-bind-address", ":8080", "`address` of /metrics; 0 for none")
	if err := onlyFlags(flags, args); err != nil {
		return err
	}
	if f.logFormat != "text" && f.logFormat != "json" {
		return fmt.Errorf("--log-format %q: give text or json", f.logFormat)
	}
	return nil
}

// connection declares the flags that say where the API server is.
func (f *runFlags) connection(flags *flag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig `file`; the default is $KUBECONFIG, then the pod's own account, then ~/.kube/config")
	flags.StringVar(&f.context, "context", "", "`name` of the kubeconfig's context to use")
}

// onlyFlags reads the arguments of a verb that takes nothing but flags.
func onlyFlags(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: everything is given by flags", flags.Arg(0))
	}
	return nil
}

// verbFlags are the flags of one verb.
type verbFlags interface {
	parse(args []string, failures io.Writer) error
}

// begin reads the flags of a verb and checks the operator. Without ok the verb ends with the exit code.
func (op *Operator) begin(flags verbFlags, args []string, failures io.Writer) (code int, ok bool) {
	if err := flags.parse(args, failures); errors.Is(err, flag.ErrHelp) {
		return exitStopped, false
	} else if err != nil {
		_, _ = fmt.Fprintln(failures, err)
		return exitUsage, false
	}
	if err := op.check(); err != nil {
		_, _ = fmt.Fprintf(failures, "the operator is not declared rightly:\n%v\n", err)
		return exitFailed, false
	}
	return exitStopped, true
}

func (op *Operator) commandRun(ctx context.Context, args []string, failures io.Writer) int {
	var flags runFlags
	if code, ok := op.begin(&flags, args, failures); !ok {
		return code
	}
	op.logTo(failures, flags)
	config, err := op.connect(&flags)
	if err != nil {
		_, _ = fmt.Fprintln(failures, err)
		return exitFailed
	}
	if flags.namespaces.given() {
		op.settings.Namespaces = flags.namespaces.parsed
	}
	if flags.LeaderElection && op.settings.Home == "" {
		op.settings.Log.Warn("no namespace is known for the Lease of a leader election: run one replica only, or name one with --state-namespace")
		flags.LeaderElection = false
	}
	op.settings.Log.Info("starting", "operator", op.settings.Identity, "version", version(), "server", config.Host)
	if err := op.Run(ctx, config, flags.RunOptions); err != nil {
		op.settings.Log.Error("the operator failed", "error", err)
		return exitFailed
	}
	op.settings.Log.Info("stopped")
	return exitStopped
}

// connect finds the API server, and where the operator keeps its books.
func (op *Operator) connect(flags *runFlags) (*rest.Config, error) {
	config, namespace, err := flags.config()
	if err != nil {
		return nil, err
	}
	op.settings.Home = cmp.Or(flags.stateNamespace, op.settings.Home, namespace)
	return config, nil
}

// logTo sets the operator's log and those of the libraries.
func (op *Operator) logTo(out io.Writer, flags runFlags) {
	options := &slog.HandlerOptions{Level: slog.LevelInfo}
	if flags.verbose {
		options.Level = slog.LevelDebug
	}
	op.settings.Log = slog.New(slog.NewTextHandler(out, options))
	if flags.logFormat == "json" {
		op.settings.Log = slog.New(slog.NewJSONHandler(out, options))
	}
	if op.ownsProcess {
		ctrl.SetLogger(op.libraryLog())
		klog.SetLogger(op.libraryLog())
	}
}

// config finds the API server: what the flags name, else $KUBECONFIG, else the pod's own account, else ~/.kube/config.
// It also tells the namespace that the kubeconfig names.
func (f *runFlags) config() (*rest.Config, string, error) {
	if f.kubeconfig == "" && f.context == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if config, err := rest.InClusterConfig(); err == nil {
			return config, "", nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context})
	config, err := loading.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("find the API server: %w; name a file with --kubeconfig", err)
	}
	namespace, _, err := loading.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("find the kubeconfig's namespace: %w", err)
	}
	if namespace == metav1.NamespaceDefault {
		namespace = "" // So it is where none is named, which is no reason to write there.
	}
	return config, namespace, nil
}

// version is the version of the operator's own module and of this library, as the build recorded them.
func version() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "unknown"
	}
	for _, dependency := range info.Deps {
		if dependency.Path == "github.com/einmal-operators/einmal" {
			return fmt.Sprintf("%s %s, einmal %s", info.Main.Path, info.Main.Version, dependency.Version)
		}
	}
	return info.Main.Path + " " + info.Main.Version
}
