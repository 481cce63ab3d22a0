//go:build !race

package component

import (
	_ "time/tzdata" // for CronJobs with a time zone

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics, as in the original programs
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric, as in the original programs
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
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
	}
	command.SetArgs(args)
	return cli.Run(command)
}
