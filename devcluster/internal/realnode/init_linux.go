package realnode

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/einmal-operators/einmal/devcluster/internal/supervise"
)

// managerArg is the argument of the process that runs the node, and not that of the first process in the namespaces.
const managerArg = "manage"

// Run runs the component with its arguments: the data directory, the directory of the certificates, and the address of the API server. It returns the
// exit code.
//
// It is the first process of the namespaces, so that every process in them whose parent has ended becomes its child. It does only what such a
// process must do: it waits for children. Another process of the same program manages the node.
func Run(args []string) int {
	code, err := run(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Component, err)
		return 1
	}
	return code
}

func run(args []string) (int, error) {
	const wanted = 3
	manages := len(args) == wanted+1 && args[0] == managerArg
	if manages {
		args = args[1:]
	}
	if len(args) != wanted {
		return 0, fmt.Errorf("expected %d arguments, got %d", wanted, len(args))
	}
	l := Layout{Data: args[0], Pki: args[1]}
	if manages {
		return 0, manage(l, args[2])
	}
	if err := isolate(l); err != nil {
		return 0, err
	}
	return startAndReap(append([]string{managerArg}, args...))
}

// startAndReap starts the manager, passes SIGTERM on to it, waits for all children, and returns the exit code of the manager.
func startAndReap(args []string) (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	manager, err := supervise.StartCopy(append([]string{"component", Component}, args...)...)
	if err != nil {
		return 0, err
	}
	go func() {
		for range signals {
			_ = unix.Kill(manager, unix.SIGTERM) // It can have ended.
		}
	}()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for children: %w", err)
		case pid == manager && status.Exited():
			return status.ExitStatus(), nil
		case pid == manager:
			return 0, fmt.Errorf("the manager was ended by the signal %s", status.Signal())
		}
	}
}
