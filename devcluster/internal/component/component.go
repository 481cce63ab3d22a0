//go:build !race

// Package component holds what a child process of devcluster runs: etcd, the
// three Kubernetes programs, the simulated nodes, the volumes, and kubectl. It
// is the only package that imports their source; everything else in this module
// builds and tests without it.
package component

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/einmal-operators/einmal/devcluster/internal/volume"
)

// The names of the components, as given to Run.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Nodes             = "nodes"
	Volumes           = "volumes"
)

// Run runs the named component in this process until it ends or the process is
// told to terminate, and returns the exit code. Only one component can run in a
// process, because each of them sets up logging and signals for itself.
func Run(name string, args []string) int {
	var err error
	switch name {
	case APIServer, ControllerManager, Scheduler:
		return runKubernetes(name, args)
	case Etcd:
		err = untilTerminated(args, runEtcd)
	case Nodes:
		err = untilTerminated(args, runNodes)
	case Volumes:
		err = untilTerminated(args, volume.Run)
	default:
		err = fmt.Errorf("there is no component of this name; there are %s",
			strings.Join(names(), ", "))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

func names() []string {
	all := []string{Etcd, APIServer, ControllerManager, Scheduler, Nodes, Volumes}
	slices.Sort(all)
	return all
}

// untilTerminated calls run with the single argument of the component and a
// context that ends when the process is asked to terminate.
func untilTerminated(args []string, run func(context.Context, string) error) error {
	if len(args) != 1 {
		return fmt.Errorf("takes one argument, got %d", len(args))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, args[0])
}
