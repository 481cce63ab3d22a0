//go:build !race

package component

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
	"k8s.io/kubectl/pkg/cmd/util"
)

// The client options of the original kubectl.
const (
	discoveryBurst = 300
	discoveryQPS   = 50
)

// Kubectl runs kubectl with args on the API server of a cluster. It sends requests to
// no other API server, whatever the arguments and the environment are. If no cluster
// was found, missing is the reason, and only commands that need no cluster work. If
// kubectl fails, Kubectl exits the process with kubectl's exit code.
func Kubectl(server string, missing error, args []string) {
	// A plugin or the user's preferences could name another cluster.
	plugin.ValidPluginFilenamePrefixes = nil
	util.CheckErr(os.Setenv(string(util.KubeRC), "false"))
	os.Args = append([]string{"kubectl"}, args...) // kubectl reads os.Args.
	logs.GlogSetter(cmd.GetLogVerbosity(os.Args))  //nolint:errcheck,gosec // as in the original kubectl
	kubectl := newKubectl(func(c *rest.Config) *rest.Config {
		util.CheckErr(missing)
		c.Host, c.Proxy = server, nil
		return c
	})
	if missing != nil {
		checkBeforeConfig(kubectl, missing)
	}
	if err := cli.RunNoErrOutput(kubectl); err != nil {
		util.CheckErr(err)
	}
}

// newKubectl returns kubectl without the flags that select a cluster. wrap adapts each
// client configuration.
func newKubectl(wrap func(*rest.Config) *rest.Config) *cobra.Command {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().
		WithDiscoveryBurst(discoveryBurst).WithDiscoveryQPS(discoveryQPS).
		WithWarningPrinter(streams).WithWrapConfigFn(wrap)
	kubectl := cmd.NewKubectlCommand(cmd.KubectlOptions{Arguments: os.Args, ConfigFlags: flags, IOStreams: streams})
	refuseClusterFlags(kubectl)
	for _, command := range kubectl.Commands() {
		refuseClusterFlags(command) // "config" has a flag --kubeconfig of its own
	}
	return kubectl
}

// checkBeforeConfig makes "kubectl config" fail. It would write to a file that does
// not belong to a cluster.
func checkBeforeConfig(kubectl *cobra.Command, missing error) {
	for _, command := range kubectl.Commands() {
		if command.Name() == "config" {
			command.PersistentPreRunE = func(*cobra.Command, []string) error { return missing }
		}
	}
}

// refuseClusterFlags makes the flags of a command that select a cluster fail. They
// cannot be removed, because kubectl fails without them.
func refuseClusterFlags(command *cobra.Command) {
	for _, name := range []string{"kubeconfig", "context", "cluster", "server"} {
		if flag := command.PersistentFlags().Lookup(name); flag != nil {
			flag.Value, flag.Hidden = refusedFlag{}, true
		}
	}
}

// refusedFlag is the value of a flag that cannot be set.
type refusedFlag struct{}

func (refusedFlag) String() string { return "" }
func (refusedFlag) Type() string   { return "string" }

func (refusedFlag) Set(string) error {
	return errors.New("this kubectl reaches only the devcluster\nremedy: leave the flag out; for other clusters, use kubectl itself")
}
