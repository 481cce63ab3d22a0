// Package cli has the commands of an operator's program: run, crds, rbac, uninstall and version.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/crd"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// The exit codes of a program.
const (
	exitOK      = 0
	exitFailed  = 1 // the command line is right and something failed
	exitUsage   = 2 // the command line is wrong
	exitRefused = 3 // uninstall changed nothing, because the operator runs
)

// Operator is what the commands need of an operator.
type Operator struct {
	// Settings are those of the operator. The flags set the log, the namespaces that are served and the state namespace.
	Settings *declaration.Settings
	Scheme   *runtime.Scheme
	// Flags are those that the author of the operator declares for the command run; nil if there are none.
	Flags *flag.FlagSet
	// OwnLogger is true if the author has given a logger. OwnsProcess is true if the libraries log through the operator.
	OwnLogger, OwnsProcess bool
	// LeaseTiming is how the Lease is held. Deadlines bound requests. Problems logs why the API server cannot be used.
	LeaseTiming kube.LeaseTiming
	Deadlines   kube.Deadlines
	Problems    *kube.ProblemLog
	// Kinds are the handled kinds, Selections the selectors of kinds.
	Kinds      []declaration.Kind
	Selections func() ([]declaration.Selection, error)
	// Check returns all registration mistakes.
	Check func() error
	// Definitions returns the CustomResourceDefinitions.
	Definitions func() ([][]byte, error)
	// Rights returns the permissions that the operator needs if it serves these namespaces.
	Rights func(served filter.Namespaces) (declaration.Rights, error)
	// Run runs the operator until the context ends.
	Run func(ctx context.Context, config *rest.Config, options RunOptions) error
}

// RunOptions is how the command run runs an operator.
type RunOptions struct {
	// HealthAddress, MetricsAddress and ProfilingAddress are where the operator listens; 0 is nowhere. CheckLoopback accepts the last one.
	HealthAddress, MetricsAddress, ProfilingAddress string
	// SingleReplica switches leader election off.
	SingleReplica bool
}

// Main runs the command that the first argument names and returns the exit code.
func (op *Operator) Main(ctx context.Context, args []string, out, failures io.Writer) int {
	if len(args) == 0 {
		op.usage(failures)
		return exitUsage
	}
	command, args := args[0], args[1:]
	switch command {
	case "run":
		return op.commandRun(ctx, args, out, failures)
	case "crds":
		return op.commandCRDs(args, out, failures)
	case "rbac":
		return op.commandRBAC(args, out, failures)
	case "uninstall":
		return op.commandUninstall(ctx, args, out, failures)
	case "version", "-version", "--version":
		return op.commandVersion(args, out, failures)
	case "help", "-h", "-help", "--help":
		op.usage(out)
		return exitOK
	default:
		_, _ = fmt.Fprintf(failures, "%[1]s: unknown command %[2]q\nsee '%[1]s --help'\n", programName(), command)
		return exitUsage
	}
}

// programName returns what the user calls the program.
func programName() string { return filepath.Base(os.Args[0]) }

func (op *Operator) usage(out io.Writer) {
	_, _ = fmt.Fprintf(out, `%[1]s is the operator %[2]s.

Usage:
  %[1]s run [flags]        handle objects until stopped
  %[1]s crds               print its CustomResourceDefinitions: %[1]s crds | kubectl apply -f -
  %[1]s rbac [flags]       print its Namespace, ServiceAccount and roles: %[1]s rbac | kubectl apply -f -
  %[1]s uninstall [flags]  remove its finalizers and records from all objects
  %[1]s version            print its name, version and commit

see '%[1]s COMMAND --help' for the flags of a command
`, programName(), op.Settings.Identity)
}

// fail prints a failure, as the program's.
func fail(failures io.Writer, err error) {
	_, _ = fmt.Fprintf(failures, "%s: %v\n", programName(), err)
}

// begin reads the arguments of a command and checks the operator. If ok is false, the command ends with the exit code.
func (op *Operator) begin(command string, flags commandFlags, args []string, out, failures io.Writer) (code int, ok bool) {
	if code, ok := parse(command, flags, args, out, failures); !ok {
		return code, false
	}
	if err := op.Check(); err != nil {
		_, _ = fmt.Fprintf(failures, "%s: invalid operator configuration:\n%v\n", programName(), err)
		return exitFailed, false
	}
	return exitOK, true
}

func (op *Operator) commandCRDs(args []string, out, failures io.Writer) int {
	const help = "Prints the CustomResourceDefinitions of the operator, for kubectl apply -f -\n"
	if code, ok := parse("crds", noFlags(help), args, out, failures); !ok {
		return code
	}
	definitions, err := op.Definitions()
	if err != nil {
		fail(failures, err)
		return exitFailed
	}
	if len(definitions) == 0 {
		fail(failures, errors.New("this operator has no CustomResourceDefinitions: give them to einmal.New with einmal.CRDs"))
		return exitFailed
	}
	for _, document := range crd.Documents(definitions) {
		_, _ = fmt.Fprintf(out, "---\n%s\n", document)
	}
	return exitOK
}
