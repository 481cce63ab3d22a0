package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
	"github.com/einmal-operators/einmal/devcluster/internal/shell"
)

// newKubectl returns the command for the help. Main runs kubectl without it.
func newKubectl(programs Programs) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [--data DIR] [ARGUMENTS]",
		Short: "Run kubectl on the nearest cluster",
		Long: `Kubectl runs the kubectl of the same version as the cluster. It uses the cluster
of the data directory DIR; --data must be the first argument. Without it, kubectl
uses the cluster of the nearest ".devcluster" directory, searching the current
directory and then its parents.

It reaches no other cluster. The flags --kubeconfig, --context, --cluster and
--server are errors. It ignores KUBECONFIG, ~/.kube/config and kuberc files, and
runs no plugins. For other clusters, use kubectl itself. The binary behaves in the
same way if it is called by the name kubectl, for example through a symbolic link.`,
		Example: `  devcluster kubectl get pods -A
  devcluster kubectl --data /tmp/cluster apply -f config/`,
		DisableFlagParsing: true,
		Run:                func(_ *cobra.Command, args []string) { runKubectl(args, programs) },
	}
}

func runKubectl(args []string, programs Programs) int {
	data, args, err := cutData(args)
	if err != nil {
		return report(&usageError{cause: err, command: "devcluster kubectl"})
	}
	file, server, missing := findCluster(data)
	if missing != nil {
		file = os.DevNull // an empty kubeconfig instead of the user's own
	}
	// Programs that kubectl starts, such as an editor, inherit the variable.
	if err := os.Setenv("KUBECONFIG", file); err != nil {
		return codeFailure
	}
	programs.Kubectl(server, missing, args)
	return codeOK
}

// cutData returns the value of the flag --data if it is the first argument, and the
// other arguments, which are kubectl's.
func cutData(args []string) (data string, others []string, err error) {
	if len(args) == 0 {
		return "", args, nil
	}
	data, found := strings.CutPrefix(args[0], "--data=")
	others = args[1:]
	if args[0] == "--data" {
		data, found = "", true
		if len(others) > 0 {
			data, others = others[0], others[1:]
		}
	}
	switch {
	case !found:
		return "", args, nil
	case data == "":
		return "", nil, errors.New("flag --data: must not be empty; name a path or omit the flag")
	}
	return data, others, nil
}

// findCluster returns the kubeconfig and the server of the cluster that is running on a
// data directory. The default is the nearest directory.
func findCluster(data string) (kubeconfig, server string, err error) {
	dir, err := dataDir(data)
	if err != nil {
		return "", "", err
	}
	running, err := dir.Locked()
	if err != nil {
		return "", "", fmt.Errorf("find out whether a cluster is running on %s: %w", dir.Path, err)
	}
	if !running {
		return "", "", fmt.Errorf("find a cluster: none is running on %s\n"+
			"remedy: start it with: devcluster up --data %s, or with: einmal dev --data %s OPERATOR_DIR",
			dir.Path, shell.Quote(dir.Path), shell.Quote(dir.Path))
	}
	state, err := dir.ReadState()
	if err != nil {
		return "", "", fmt.Errorf("find the kubeconfig of the cluster that is starting on %s: %w; try again", dir.Path, err)
	}
	if _, err := readKubeconfig(state.Kubeconfig, state.Server); err != nil {
		return "", "", fmt.Errorf("%w\nremedy: %s", err, rewriteKubeconfig(dir.Path))
	}
	return state.Kubeconfig, state.Server, nil
}

// dataDir returns the data directory at a path, by default the nearest one.
func dataDir(path string) (instance.Dir, error) {
	if path != "" {
		return instance.At(path)
	}
	current, err := os.Getwd()
	if err != nil {
		return instance.Dir{}, fmt.Errorf("find the current directory: %w", err)
	}
	dir, ok := instance.Nearest(current)
	if !ok {
		return instance.Dir{}, errors.New("find a cluster: no directory .devcluster here or in a parent directory\n" +
			"remedy: start a cluster here with: devcluster up, or with: einmal dev OPERATOR_DIR\n" +
			"        for other clusters, use kubectl itself")
	}
	return dir, nil
}

// readKubeconfig reads the kubeconfig of a running cluster. It returns an error if the
// file was changed so that it leads to another server than that of the cluster.
func readKubeconfig(file, server string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if config.Host != server {
		return nil, fmt.Errorf("read kubeconfig %s: its server must be that of the cluster, %s, got %s", file, server, config.Host)
	}
	if config.Proxy != nil {
		return nil, fmt.Errorf("read kubeconfig %s: it must not have a proxy-url", file)
	}
	return config, nil
}

// rewriteKubeconfig returns the remedy for a running cluster whose kubeconfig was
// deleted or changed.
func rewriteKubeconfig(data string) string {
	return "write the kubeconfig again by a restart, which keeps the data: devcluster down --data " + shell.Quote(data) +
		" && devcluster up --data " + shell.Quote(data)
}
