package einmal

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The exit codes of Main.
const (
	exitOK      = 0
	exitFailed  = 1 // the command line is right and something failed
	exitUsage   = 2 // the command line is wrong
	exitRefused = 3 // uninstall changed nothing, because the operator runs
)

// command runs one verb and returns the exit code.
func (op *Operator) command(ctx context.Context, args []string, out, failures io.Writer) int {
	if len(args) == 0 {
		op.usage(failures)
		return exitUsage
	}
	verb, args := args[0], args[1:]
	switch verb {
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
		_, _ = fmt.Fprintf(failures, "%[1]s: unknown verb %[2]q\nSee '%[1]s --help'.\n", programName(), verb)
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

See '%[1]s VERB --help' for the flags of a verb.
`, programName(), op.settings.Identity)
}

// verbFlags are the flags of one verb.
type verbFlags interface {
	// declare adds the flags to a set.
	declare(set *flag.FlagSet)
	// validate returns an error if a value is invalid.
	validate() error
	// help describes the verb.
	help() string
}

// noFlags are the flags of a verb that has none.
type noFlags string

func (noFlags) declare(*flag.FlagSet) {}
func (noFlags) validate() error       { return nil }
func (n noFlags) help() string        { return string(n) }

// parse reads the arguments of a verb. If ok is false, the verb ends with the exit code.
func parse(verb string, flags verbFlags, args []string, out, failures io.Writer) (code int, ok bool) {
	set := flag.NewFlagSet(verb, flag.ContinueOnError)
	set.SetOutput(io.Discard) // The errors are printed below, once.
	flags.declare(set)
	err := set.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		printHelp(verb, flags, set, out)
		return exitOK, false
	}
	if err == nil && set.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q: %s takes flags only", set.Arg(0), verb)
	}
	if err == nil {
		err = flags.validate()
	}
	if err != nil {
		_, _ = fmt.Fprintf(failures, "%[1]s %[2]s: %[3]v\nSee '%[1]s %[2]s --help'.\n", programName(), verb, err)
		return exitUsage, false
	}
	return exitOK, true
}

func printHelp(verb string, flags verbFlags, set *flag.FlagSet, out io.Writer) {
	declared := false
	set.VisitAll(func(*flag.Flag) { declared = true })
	if !declared {
		_, _ = fmt.Fprintf(out, "Usage: %s %s\n\n%s", programName(), verb, flags.help())
		return
	}
	_, _ = fmt.Fprintf(out, "Usage: %s %s [flags]\n\n%s\nFlags:\n", programName(), verb, flags.help())
	set.SetOutput(out)
	set.PrintDefaults()
}

// begin reads the arguments of a verb and checks the operator. If ok is false, the verb ends with the exit code.
func (op *Operator) begin(verb string, flags verbFlags, args []string, out, failures io.Writer) (code int, ok bool) {
	if code, ok := parse(verb, flags, args, out, failures); !ok {
		return code, false
	}
	if err := op.check(); err != nil {
		_, _ = fmt.Fprintf(failures, "invalid operator configuration:\n%v\n", err)
		return exitFailed, false
	}
	return exitOK, true
}

// checkNamespace returns an error if the value of a flag cannot be the name of a namespace.
func checkNamespace(flagName, value string) error {
	for _, problem := range validation.IsDNS1123Label(value) {
		return fmt.Errorf("invalid value %q for flag -%s: %s", value, flagName, problem)
	}
	return nil
}

func (op *Operator) commandCRDs(args []string, out, failures io.Writer) int {
	const help = "Prints the CustomResourceDefinitions of the operator, for kubectl apply -f -\n"
	if code, ok := parse("crds", noFlags(help), args, out, failures); !ok {
		return code
	}
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
	return exitOK
}
