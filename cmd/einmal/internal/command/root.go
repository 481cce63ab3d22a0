// Package command implements the command line of einmal: its commands, flags, help and exit codes.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitClean   = 0
	exitFailure = 1
	exitUsage   = 2
)

// duplicateWindow is how long after the first signal another one is treated as a duplicate of it.
const duplicateWindow = 250 * time.Millisecond

// usageError reports an invalid command line. Its command is the one whose help explains the correct usage.
type usageError struct {
	cause   error
	command string
}

func (e *usageError) Error() string { return e.cause.Error() }
func (e *usageError) Unwrap() error { return e.cause }

// Main runs the command line args (the program name first) and returns the exit code. If version is empty, that in the Go
// build information is used. The first SIGINT, SIGTERM or SIGHUP starts a graceful shutdown, the second one kills everything
// immediately.
func Main(args []string, version string) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	forceStop := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	go handleSignals(signals, stop, forceStop)
	root := newRoot(args[0], version, forceStop)
	root.SetArgs(args[1:])
	return exitCode(root.ExecuteContext(ctx))
}

// handleSignals calls stop at the first signal and closes forceStop at the next one. It ignores signals within
// duplicateWindow of the first: a parent process may forward a signal that the terminal has also sent to this process.
func handleSignals(signals <-chan os.Signal, stop func(), forceStop chan<- struct{}) {
	<-signals
	stop()
	for first := time.Now(); ; {
		<-signals
		if time.Since(first) >= duplicateWindow {
			close(forceStop)
			return
		}
	}
}

// exitCode prints an error and returns the exit code.
func exitCode(err error) int {
	if err == nil {
		return exitClean
	}
	fmt.Fprintf(os.Stderr, "einmal: %v\n", err)
	if usage, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintf(os.Stderr, "see '%s --help'\n", usage.command)
		return exitUsage
	}
	return exitFailure
}

func newRoot(self, version string, forceStop <-chan struct{}) *cobra.Command {
	root := &cobra.Command{
		Use:   "einmal",
		Short: "Develop Kubernetes operators made with Einmal",
		Long: `Einmal is the command-line tool of the Einmal framework for Kubernetes
operators. It runs an operator from its sources in a real Kubernetes control
plane on this machine.`,
		Example: `  einmal dev ./operators/volumeclaim
  einmal kubectl get crds`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return &usageError{cause: errors.New("missing command"), command: cmd.CommandPath()}
		},
	}
	root.Version = describe(version)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{cause: err, command: cmd.CommandPath()}
	})
	root.SetHelpCommand(newHelp())
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newDev(self, forceStop), newKubectl(), newVersion(version))
	return root
}

// unknownCommand returns the error for a command that does not exist.
func unknownCommand(root *cobra.Command, name string) error {
	return &usageError{cause: fmt.Errorf("unknown command %q", name), command: root.CommandPath()}
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			return found.Help()
		},
	}
}
