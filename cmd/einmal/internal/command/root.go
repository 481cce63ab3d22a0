// Package command is the command line of einmal: its verbs, flags, help and exit codes.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/consent"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/guard"
)

// The exit codes.
const (
	exitClean   = 0
	exitFailure = 1
	exitUsage   = 2
)

// devPath is the command line that runs an operator.
const devPath = "einmal dev"

// sameSignal is how soon after the first signal another one is no answer of a person to it.
const sameSignal = 250 * time.Millisecond

// Surroundings are what a command is given besides its arguments.
type Surroundings struct {
	// Version is that of the program; empty means that what the Go toolchain knows is said.
	Version string
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
}

// usageError is a command line that is not understood.
type usageError struct {
	cause   error
	command string
}

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

// exitError ends the program with a code, when all has been said already.
type exitError int

func (e exitError) Error() string { return guard.Describe(int(e)) }

// Main runs the command line args (the program's own name first) and returns the exit code. The first signal to end
// asks for an orderly end, the second one ends everything at once.
func Main(args []string, around Surroundings) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	again := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	go passOn(signals, stop, again)
	root := newRoot(args[0], around, again)
	root.SetArgs(args[1:])
	return exitCode(root.ExecuteContext(ctx), around.Err)
}

// passOn calls stop at the first signal and closes again at the next one. What follows within a moment is the same
// signal once more: a program that started this one may pass on what the terminal has sent to both.
func passOn(signals <-chan os.Signal, stop func(), again chan<- struct{}) {
	<-signals
	stop()
	for first := time.Now(); ; {
		<-signals
		if time.Since(first) >= sameSignal {
			close(again)
			return
		}
	}
}

func exitCode(err error, stderr io.Writer) int {
	var exit exitError
	var usage *usageError
	var missing *consent.MissingError
	var other *consent.OtherError
	switch {
	case err == nil:
		return exitClean
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		return sayUsage(stderr, err, usage.command)
	case errors.As(err, &missing), errors.As(err, &other):
		return sayUsage(stderr, err, devPath)
	default:
		_, _ = fmt.Fprintf(stderr, "einmal: %v\n", err)
		return exitFailure
	}
}

func sayUsage(stderr io.Writer, err error, command string) int {
	_, _ = fmt.Fprintf(stderr, "einmal: %v\nsee '%s --help'\n", err, command)
	return exitUsage
}

func newRoot(self string, around Surroundings, again <-chan struct{}) *cobra.Command {
	root := &cobra.Command{
		Use:   "einmal",
		Short: "Develop Kubernetes operators made with Einmal",
		Long: `Einmal is the tool beside the Go framework of that name. It runs an operator
from its sources in a real Kubernetes control plane on this machine.`,
		Example: `  einmal dev ./operators/volumeclaim
  einmal kubectl get crds`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = describe(around.Version)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(around.In)
	root.SetOut(around.Out)
	root.SetErr(around.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{cause: err, command: cmd.CommandPath()}
	})
	root.SetHelpCommand(newHelp())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newDev(self, again), newKubectl(), newVersion(around.Version), newGuard())
	return root
}

// noCommand is the error of a command line that names a command that does not exist.
func noCommand(root *cobra.Command, name string) error {
	return &usageError{cause: fmt.Errorf("there is no command %q", name), command: root.CommandPath()}
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return noCommand(cmd.Root(), args[0])
			}
			return found.Help()
		},
	}
}

func newGuard() *cobra.Command {
	return &cobra.Command{
		Use:                "guard PROGRAM [ARGUMENTS]",
		Short:              "Run a program that ends when file descriptor 3 does",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE:               func(_ *cobra.Command, args []string) error { return exitError(guard.Main(args)) },
	}
}
