//go:build !race

package component

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // credential plugins, as in the original program
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// Kubectl runs kubectl with args and returns only when it succeeded; on failure
// it ends the process with kubectl's own exit code.
func Kubectl(args []string) {
	// kubectl and its plugins read the process's arguments.
	os.Args = append([]string{"kubectl"}, args...)
	logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) //nolint:errcheck,gosec // as the original program does
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
