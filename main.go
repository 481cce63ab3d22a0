package einmal

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal/internal/cli"
	"github.com/einmal-operators/einmal/internal/engine"
)

// Main is the main function of an operator's program. It has these commands:
//
//	run       handle objects until SIGINT or SIGTERM. Running handlers then finish. A second signal ends the process at once.
//	crds      print the operator's CustomResourceDefinitions, for kubectl apply -f -
//	rbac      print the Namespace, the ServiceAccount and the roles that the operator needs, for kubectl apply -f -
//	uninstall remove the finalizers and records of a stopped operator from all objects; has a dry run
//	version   print the name, the version and the commit
//
// The exit code is 0 after success or a stop, 1 after a failure, and 2 for an invalid command line. The command uninstall
// exits with 3 if it refuses because the operator is running. Results go to standard output, logs and messages to
// standard error.
func (op *Operator) Main() {
	op.ownsProcess = true
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, cancel) // After the first signal, so that a second one ends the process.
	os.Exit(op.commands().Main(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// commands returns the operator as its commands use it.
func (op *Operator) commands() *cli.Operator {
	made := &cli.Operator{
		Settings: &op.settings, Scheme: op.scheme, Flags: op.ownFlags, OwnLogger: op.ownLogger, OwnsProcess: op.ownsProcess,
		Pace: op.pace, Deadlines: op.deadlines, Problems: &op.problems,
		Check: op.check, Definitions: op.definitions, Rights: op.rights,
		Selections: func() ([]engine.Selection, error) {
			watched, err := op.watched()
			return watched.selections, err
		},
		Run: func(ctx context.Context, config *rest.Config, options cli.RunOptions) error {
			return op.Run(ctx, config, RunOptions(options))
		},
	}
	for _, declared := range op.kinds {
		made.Kinds = append(made.Kinds, declared.kind)
	}
	return made
}
