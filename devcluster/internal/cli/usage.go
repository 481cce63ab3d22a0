package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes, besides codeNotRunning.
const (
	codeOK      = 0
	codeFailure = 1
	codeUsage   = 2
)

// usageError reports an invalid command line.
type usageError struct {
	cause error
	// command is the command whose help explains the correct usage.
	command string
}

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

// wrongUsage returns an error about the command line of a command.
func wrongUsage(cmd *cobra.Command, cause error) error {
	return &usageError{cause: cause, command: cmd.CommandPath()}
}

// noArguments rejects all arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return wrongUsage(cmd, fmt.Errorf("unexpected argument %q", args[0]))
}

// knownCommand returns the usage error of a command line without a known command.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return wrongUsage(cmd, errors.New("missing command"))
	}
	return unknownCommand(cmd, args[0])
}

// unknownCommand returns the usage error for a command that does not exist.
func unknownCommand(root *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q", name)
	if similar := root.SuggestionsFor(name); len(similar) > 0 {
		text += fmt.Sprintf("; did you mean %s?", strings.Join(similar, " or "))
	}
	return wrongUsage(root, errors.New(text))
}

// notEmpty rejects an empty value of flags that name a path. Usually it comes
// from an unset shell variable.
func notEmpty(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return wrongUsage(cmd, fmt.Errorf("flag --%s: must not be empty; name a path or omit the flag", name))
		}
	}
	return nil
}
