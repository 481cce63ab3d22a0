package einmal

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/einmal-operators/einmal/internal/cli"
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/edge/kube"
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
		LeaseTiming: op.leaseTiming, Deadlines: op.deadlines, Problems: &op.problems,
		Check: op.check, Definitions: op.definitions, Rights: op.rights,
		Selections: func() ([]declaration.Selection, error) {
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

// Flags adds flags of your own to the command run of Main. The function declares them, as it would with the flag package:
//
//	var url string
//	op := einmal.New("websites.example.com", einmal.Flags(func(set *flag.FlagSet) {
//		set.StringVar(&url, "registrar-url", "", "`URL` of the registrar")
//	}))
//
// The values are set before startup handlers run. Each flag can be given by an environment variable too, EINMAL_REGISTRAR_URL here: the
// flag comes before the variable, and the variable before the default. A flag with the name of one of Einmal's own is an error of Run.
func Flags(declare func(*flag.FlagSet)) OperatorOption {
	return option{name: "Flags", operator: func(op *Operator) (err error) {
		if declare == nil {
			return errors.New("option Flags: the function is nil")
		}
		if op.ownFlags == nil {
			op.ownFlags = flag.NewFlagSet("run", flag.ContinueOnError)
			op.ownFlags.SetOutput(io.Discard)
		}
		defer func() {
			if failed := recover(); failed != nil {
				err = fmt.Errorf("option Flags: %v", failed)
			}
		}()
		declare(op.ownFlags)
		return nil
	}}
}

// ManagerOptions changes the options of the manager that Run creates. Run calls the function when the flags have their values, and after it has
// set the addresses and leader election in the options. Use it, for example, to authenticate the clients of the metrics server, to serve
// further paths there, or to set the port and the certificates of the webhook server. NewManager says which options are refused.
func ManagerOptions(change func(*manager.Options)) OperatorOption {
	return option{name: "ManagerOptions", operator: func(op *Operator) error {
		if change == nil {
			return errors.New("option ManagerOptions: the function is nil")
		}
		op.managerChanges = append(op.managerChanges, change)
		return nil
	}}
}

// SetupManager adds reconcilers, webhooks and runnables to the manager that Run creates: it calls the function with the manager before the manager
// starts. The method SetupWithManager of a reconciler is such a function. They start and stop with the operator. Of several replicas, the
// elected one runs reconcilers and runnables. All replicas serve webhooks, and run the runnables whose NeedLeaderElection returns false. Until
// it is elected, a replica cannot write through the manager's client.
//
// Declare with Permissions what a reconciler needs. Package einmaltest does not call the function.
func SetupManager(setup func(manager.Manager) error) OperatorOption {
	return option{name: "SetupManager", operator: func(op *Operator) error {
		if setup == nil {
			return errors.New("option SetupManager: the function is nil")
		}
		op.managerSetups = append(op.managerSetups, setup)
		return nil
	}}
}

// shortestLease is the shortest duration of a Lease: the replica renews it 7 times meanwhile.
const shortestLease = 5 * time.Second

// LeaseDuration sets how long a replica that has crashed or hangs keeps others from taking over. The default is 15 seconds, the minimum 5 seconds.
// A replica renews its Lease every 2/15 of the duration, and stops acting after 12/15 without a renewal.
func LeaseDuration(d time.Duration) OperatorOption {
	return option{name: "LeaseDuration", operator: func(op *Operator) error {
		if d < shortestLease {
			return fmt.Errorf("option LeaseDuration: must be at least %s, got %s", shortestLease, d)
		}
		op.leaseTiming = kube.LeaseTimingOf(d)
		return nil
	}}
}
