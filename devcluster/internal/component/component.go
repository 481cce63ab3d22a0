//go:build !race

// Package component runs the components of a cluster in child processes: etcd, the
// Kubernetes programs, the simulated nodes, a real node and volumes. It also runs kubectl.
// It is the only package that imports their sources, so that the rest of the
// module builds and tests quickly.
package component

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/einmal-operators/einmal/devcluster/internal/dns"
	"github.com/einmal-operators/einmal/devcluster/internal/realnode"
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
	Kubelet           = "kubelet"
	KubeProxy         = "kube-proxy"
	DNS               = "dns"
)

// Run runs the named component in this process until it exits or the process
// receives SIGTERM, and returns the exit code. A process can run only one
// component, because each sets up logging and signal handling.
func Run(name string, args []string) int {
	var err error
	switch name {
	case APIServer, ControllerManager, Scheduler, Kubelet, KubeProxy:
		return runKubernetes(name, args)
	case Etcd:
		err = untilTerminated(args, runEtcd)
	case Nodes:
		err = untilTerminated(args, runNodes)
	case Volumes:
		err = runVolumes(args)
	case DNS:
		err = runDNS(args)
	case realnode.Component:
		return realnode.Run(args)
	default:
		err = fmt.Errorf("unknown component; the components are %s",
			strings.Join(names(), ", "))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

func names() []string {
	all := []string{Etcd, APIServer, ControllerManager, Scheduler, Nodes, Volumes, Kubelet, KubeProxy, DNS, realnode.Component}
	slices.Sort(all)
	return all
}

// runVolumes runs the provisioner with its arguments: a kubeconfig and the directory
// of the volumes.
func runVolumes(args []string) error {
	const wanted = 2
	if len(args) != wanted {
		return fmt.Errorf("expected %d arguments, got %d", wanted, len(args))
	}
	return untilTerminated(args[:1], func(ctx context.Context, kubeconfig string) error {
		return volume.Run(ctx, kubeconfig, args[1])
	})
}

// runDNS answers the queries of Pods. Its arguments are a kubeconfig, the address to listen on, and the socket of the machine's resolver.
func runDNS(args []string) error {
	const wanted = 3
	if len(args) != wanted {
		return fmt.Errorf("expected %d arguments, got %d", wanted, len(args))
	}
	return untilTerminated(args[:1], func(ctx context.Context, kubeconfig string) error {
		return dns.Run(ctx, kubeconfig, args[1], args[2])
	})
}

// untilTerminated calls run with the single argument of the component and a
// context that is canceled by SIGINT or SIGTERM.
func untilTerminated(args []string, run func(context.Context, string) error) error {
	if len(args) != 1 {
		return fmt.Errorf("expected one argument, got %d", len(args))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, args[0])
}
