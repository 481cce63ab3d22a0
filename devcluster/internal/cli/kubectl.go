package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
	"github.com/einmal-operators/einmal/devcluster/internal/shell"
)

// newKubectl is there for the help; Main does not come as far as its Run.
func newKubectl(programs Programs) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [arguments]",
		Short: "Run kubectl, by default against the nearest cluster",
		Long: `Kubectl is the original kubectl of the same version as the cluster. Unless
--kubeconfig or the environment variable KUBECONFIG names a kubeconfig, it uses
the one of the nearest directory ".devcluster", looking in the current
directory and then upward. It never uses ~/.kube/config by itself: when there is
no such directory it fails. The binary is also kubectl, in the same way, when it
is called by that name, for example through a symbolic link.`,
		Example: `  devcluster kubectl get pods -A
  devcluster kubectl apply -f config/`,
		DisableFlagParsing: true,
		Run:                func(_ *cobra.Command, args []string) { runKubectl(args, programs) },
	}
}

func runKubectl(args []string, programs Programs) int {
	if os.Getenv("KUBECONFIG") == "" && !namesKubeconfig(args) {
		file, err := nearestKubeconfig()
		if err != nil && needsCluster(args) {
			fmt.Fprintln(os.Stderr, "devcluster kubectl:", err)
			return codeFailure
		}
		if err != nil {
			file = os.DevNull // a kubeconfig without a cluster, and not that of the user
		}
		// The flag --kubeconfig has precedence over the environment, and
		// kubectl's plugins see the environment as well.
		if err := os.Setenv("KUBECONFIG", file); err != nil {
			return codeFailure
		}
	}
	programs.Kubectl(args)
	return codeOK
}

// namesKubeconfig reports whether the arguments have --kubeconfig with a value.
// An empty value counts as none, as it does for kubectl.
func namesKubeconfig(args []string) bool {
	args = own(args)
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--kubeconfig="); ok && value != "" {
			return true
		}
		if arg == "--kubeconfig" && i+1 < len(args) && args[i+1] != "" {
			return true
		}
	}
	return false
}

// needsCluster reports whether kubectl may ask a server, or look into a
// kubeconfig, with these arguments. In doubt it does.
func needsCluster(args []string) bool {
	args = own(args)
	if len(args) == 0 || slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		return false
	}
	switch args[0] {
	case "help", "completion", "options", "kustomize":
		return false
	case "version":
		return !slices.Contains(args, "--client") && !slices.Contains(args, "--client=true")
	}
	return true
}

// own returns the arguments that are kubectl's own, and not of a command to run
// in a container.
func own(args []string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i]
	}
	return args
}

// nearestKubeconfig returns the kubeconfig of the nearest data directory.
func nearestKubeconfig() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the current directory: %w", err)
	}
	data, ok := instance.Nearest(dir)
	if !ok {
		return "", errors.New("there is no directory .devcluster here or above, and ~/.kube/config is not used by itself:\n" +
			"start a cluster here with: devcluster up\nor name a kubeconfig with --kubeconfig or KUBECONFIG")
	}
	file := data.File("kubeconfig")
	if state, err := data.ReadState(); err == nil {
		file = state.Kubeconfig
	}
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("the cluster in %s has no kubeconfig: %w\nstart it with: devcluster up --data %s",
			data.Path, err, shell.Quote(data.Path))
	}
	return file, nil
}
