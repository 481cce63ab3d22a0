package einmal

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Main is the main function of an operator's binary, with these verbs:
//
//	run       handle objects until SIGINT or SIGTERM; running handlers then finish. A second signal ends at once.
//	crds      print the operator's CustomResourceDefinitions, for kubectl apply -f -
//	rbac      print the Namespace, the ServiceAccount and the roles that it needs, for kubectl apply -f -
//	uninstall remove the operator's finalizers and records from all objects, when it is stopped; with a dry run
//	version   print the name, the version and the commit
//
// It exits with 0 after success or a stop, 1 after a failure, and 2 after a wrong command line. The verb uninstall exits
// with 3 if it refuses because the operator runs. Results go to standard output, logs and messages to standard error.
func (op *Operator) Main() {
	op.ownsProcess = true
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, cancel) // From then on a second signal ends the process.
	os.Exit(op.command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
