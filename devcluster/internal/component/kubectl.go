//go:build !race

package component

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // credential plugins, as in the original kubectl
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// Kubectl runs kubectl with args. If kubectl fails, Kubectl exits the process with
// kubectl's exit code.
func Kubectl(args []string) {
	// kubectl and its plugins read os.Args.
	os.Args = append([]string{"kubectl"}, args...)
	logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) //nolint:errcheck,gosec // as in the original kubectl
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
