package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
)

// newKubectl is there for the help; Main does not come as far as its Run.
func newKubectl(programs Programs) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [arguments]",
		Short: "Run kubectl, by default against the nearest cluster",
		Long: `Kubectl is the original kubectl of the same version as the cluster. Unless
--kubeconfig or the environment variable KUBECONFIG names a kubeconfig, it uses
the one of the nearest directory ".devcluster", looking in the current
directory and then upward. The binary is also kubectl when it is called by that
name, for example through a symbolic link.`,
		Example: `  devcluster kubectl get pods -A
  devcluster kubectl apply -f config/`,
		DisableFlagParsing: true,
		Run:                func(_ *cobra.Command, args []string) { runKubectl(args, programs) },
	}
}

func runKubectl(args []string, programs Programs) int {
	if os.Getenv("KUBECONFIG") == "" {
		if file, ok := nearestKubeconfig(); ok {
			// The flag --kubeconfig has precedence over the environment, and
			// kubectl's plugins see the environment as well.
			if err := os.Setenv("KUBECONFIG", file); err != nil {
				return 1
			}
		}
	}
	programs.Kubectl(args)
	return 0
}

func nearestKubeconfig() (string, bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	data, ok := instance.Nearest(dir)
	if !ok {
		return "", false
	}
	file := data.File("kubeconfig")
	if state, err := data.ReadState(); err == nil {
		file = state.Kubeconfig
	}
	_, err = os.Stat(file)
	return file, err == nil
}
