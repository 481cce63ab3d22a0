//go:build !race

package component

import (
	"context"
	_ "time/tzdata" // for CronJobs with a time zone

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics, as in the original programs
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric, as in the original programs
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// runKubernetes runs one of the original Kubernetes programs with its flags.
func runKubernetes(name string, args []string) int {
	var command *cobra.Command
	switch name {
	case APIServer:
		command = apiserver.NewAPIServerCommand()
	case ControllerManager:
		command = controllermanager.NewControllerManagerCommand()
	case Scheduler:
		command = scheduler.NewSchedulerCommand()
	case Kubelet:
		command = kubelet.NewKubeletCommand(context.Background())
	case KubeProxy:
		command = kubeproxy.NewProxyCommand()
	}
	command.SetArgs(args)
	return cli.Run(command)
}
