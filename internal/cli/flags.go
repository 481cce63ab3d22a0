package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// environmentPrefix begins the name of each environment variable that stands for a flag.
const environmentPrefix = "EINMAL_"

// commandFlags are the flags of one command.
type commandFlags interface {
	// declare adds the flags to a set.
	declare(set *flag.FlagSet)
	// validate returns an error, a flagError if it is about one flag, if a value is invalid.
	validate() error
	// own reports whether the author of the operator declares a flag.
	own(name string) bool
	// help describes the command.
	help() string
}

// noFlags are the flags of a command that has none.
type noFlags string

func (noFlags) declare(*flag.FlagSet) {}
func (noFlags) validate() error       { return nil }
func (noFlags) own(string) bool       { return false }
func (n noFlags) help() string        { return string(n) }

// flagError says what is wrong with the value of one flag.
type flagError struct {
	name, value string
	reason      string
}

// Error names the flag.
func (e *flagError) Error() string {
	return fmt.Sprintf("invalid value %q for flag -%s: %s", e.value, e.name, e.reason)
}

// ofVariable says the same of the environment variable that gave the value.
func (e *flagError) ofVariable() error {
	return fmt.Errorf("invalid value %q of the environment variable %s: %s", e.value, variableOf(e.name), e.reason)
}

// variableOf returns the name of the environment variable that stands for a flag.
func variableOf(name string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// parse reads the arguments of a command, and for each flag that they do not give, its environment variable. If ok is false, the command ends with the
// exit code.
func parse(command string, flags commandFlags, args []string, out, failures io.Writer) (code int, ok bool) {
	set := flag.NewFlagSet(command, flag.ContinueOnError)
	set.SetOutput(io.Discard) // The errors are printed below, once.
	flags.declare(set)
	err := readFlags(set, command, flags, args)
	if errors.Is(err, flag.ErrHelp) {
		printHelp(command, flags, set, out)
		return exitOK, false
	}
	var given map[string]bool
	if err == nil {
		given, err = readVariables(set)
	}
	if err == nil {
		err = flags.validate()
	}
	if invalid, is := errors.AsType[*flagError](err); is && given != nil && !given[invalid.name] {
		err = invalid.ofVariable()
	}
	if err != nil {
		_, _ = fmt.Fprintf(failures, "%[1]s %[2]s: %[3]v\nsee '%[1]s %[2]s --help'\n", programName(), command, err)
		return exitUsage, false
	}
	return exitOK, true
}

// readFlags reads the arguments of a command, which are flags only. A flag of ours that is given an empty value, as by an unset variable of a
// shell, is an error: it would silently mean the default.
func readFlags(set *flag.FlagSet, command string, flags commandFlags, args []string) error {
	if err := set.Parse(args); err != nil {
		return err //nolint:wrapcheck // It names the flag.
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: %s takes flags only", set.Arg(0), command)
	}
	var empty error
	set.Visit(func(one *flag.Flag) {
		if one.Value.String() == "" && !flags.own(one.Name) {
			empty = errors.Join(empty, &flagError{name: one.Name, reason: "must not be empty; leave the flag out for its default"})
		}
	})
	return empty
}

// readVariables sets the flags that the arguments do not give from the environment. It returns those that the arguments give.
func readVariables(set *flag.FlagSet) (map[string]bool, error) {
	given := map[string]bool{}
	set.Visit(func(one *flag.Flag) { given[one.Name] = true })
	var invalid error
	set.VisitAll(func(one *flag.Flag) {
		value, ok := os.LookupEnv(variableOf(one.Name))
		if !ok || value == "" || given[one.Name] {
			return
		}
		if err := set.Set(one.Name, value); err != nil {
			invalid = errors.Join(invalid, (&flagError{name: one.Name, value: value, reason: err.Error()}).ofVariable())
		}
	})
	return given, invalid
}

func printHelp(command string, flags commandFlags, set *flag.FlagSet, out io.Writer) {
	declared := false
	set.VisitAll(func(*flag.Flag) { declared = true })
	if !declared {
		_, _ = fmt.Fprintf(out, "Usage: %s %s\n\n%s", programName(), command, flags.help())
		return
	}
	_, _ = fmt.Fprintf(out, "Usage: %s %s [flags]\n\n%s\nFlags:\n", programName(), command, flags.help())
	set.SetOutput(out)
	set.PrintDefaults()
	_, _ = fmt.Fprintf(out, "\nEach flag can be given by an environment variable too: %sLOG_LEVEL for -log-level. The flag comes before the variable.\n", environmentPrefix)
}

// checkNamespace returns an error if the value of a flag cannot be the name of a namespace.
func checkNamespace(flagName, value string) error {
	for _, problem := range validation.IsDNS1123Label(value) {
		return &flagError{name: flagName, value: value, reason: problem}
	}
	return nil
}

// declareOwn adds the flags that the author of the operator declares to those of the command run.
func declareOwn(own, set *flag.FlagSet) {
	eachFlag(own, func(one *flag.Flag) {
		if set.Lookup(one.Name) == nil {
			set.Var(one.Value, one.Name, one.Usage)
			set.Lookup(one.Name).DefValue = one.DefValue
		}
	})
}

// eachFlag calls a function with each flag of a set, which may be nil.
func eachFlag(of *flag.FlagSet, do func(*flag.Flag)) {
	if of != nil {
		of.VisitAll(do)
	}
}

// CheckFlags returns an error for each flag of the author that clashes with one of the command run.
func CheckFlags(own *flag.FlagSet) error {
	ours := flag.NewFlagSet("run", flag.ContinueOnError)
	(&runFlags{}).declare(ours)
	var clashes error
	eachFlag(own, func(one *flag.Flag) {
		if ours.Lookup(one.Name) != nil || one.Name == "h" || one.Name == "help" {
			clashes = errors.Join(clashes, fmt.Errorf("option Flags: flag -%s is one of Einmal's own: choose another name", one.Name))
		}
	})
	return clashes
}
