package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes, besides that of "status" when no cluster runs.
const (
	codeOK      = 0
	codeFailure = 1
	codeUsage   = 2
)

// usageError is a wrong command line.
type usageError struct {
	cause error
	// command is the command whose help says what is right.
	command string
}

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

// wrongUsage returns an error about the command line of a command.
func wrongUsage(cmd *cobra.Command, cause error) error {
	return &usageError{cause: cause, command: cmd.CommandPath()}
}

// noArguments refuses arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return wrongUsage(cmd, fmt.Errorf("unexpected argument %q", args[0]))
}

// knownCommand refuses arguments of the program itself: they name no command.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return wrongUsage(cmd, errors.New("a command is missing"))
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		text += fmt.Sprintf("; did you mean %s?", strings.Join(similar, " or "))
	}
	return wrongUsage(cmd, errors.New(text))
}

// notEmpty refuses an empty value of a flag that names a path: it is more likely
// an unset variable than a wish.
func notEmpty(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return wrongUsage(cmd, fmt.Errorf("--%s is empty: name a path or leave the flag out", name))
		}
	}
	return nil
}
