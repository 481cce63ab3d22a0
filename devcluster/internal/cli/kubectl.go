package cli

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
	"github.com/einmal-operators/einmal/devcluster/internal/shell"
)

// newKubectl returns the command for the help. Main runs kubectl without it.
func newKubectl(programs Programs) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [ARGUMENTS]",
		Short: "Run kubectl, by default against the nearest cluster",
		Long: `Kubectl runs the original kubectl of the same version as the cluster. It uses the
cluster of the nearest ".devcluster" directory, searching the current directory
and then its parents. Use --kubeconfig to name another cluster. The environment
variable KUBECONFIG is used only if no cluster is running for that directory, and
only if its server is on this machine; kubectl prints a line if it ignores the
variable. It never uses ~/.kube/config implicitly. The binary behaves in the same
way if it is called by the name kubectl, for example through a symbolic link.`,
		Example: `  devcluster kubectl get pods -A
  devcluster kubectl apply -f config/`,
		DisableFlagParsing: true,
		Run:                func(_ *cobra.Command, args []string) { runKubectl(args, programs) },
	}
}

func runKubectl(args []string, programs Programs) int {
	if flag, ok := emptyClusterFlag(args); ok {
		return report(&usageError{cause: fmt.Errorf("flag %s: must not be empty; leave the flag out", flag), command: "devcluster kubectl"})
	}
	if !hasFlag(args, "--kubeconfig") {
		file, err := chooseKubeconfig(args)
		if err != nil && needsCluster(args) {
			fmt.Fprintln(os.Stderr, "devcluster kubectl:", err)
			return codeFailure
		}
		if err != nil {
			file = os.DevNull // an empty kubeconfig instead of the user's own
		}
		// Set the environment variable because --kubeconfig takes precedence
		// over it and kubectl's plugins inherit it.
		if err := os.Setenv("KUBECONFIG", file); err != nil {
			return codeFailure
		}
	}
	programs.Kubectl(args)
	return codeOK
}

// chooseKubeconfig returns the kubeconfig to use if the arguments name none: that
// of the cluster that is running for the nearest data directory, else $KUBECONFIG
// if its server is on this machine, else that of the nearest data directory.
func chooseKubeconfig(args []string) (string, error) {
	given := os.Getenv("KUBECONFIG")
	file, running, err := nearestKubeconfig()
	switch {
	case given == "" || given == file:
		return file, err
	case running && err == nil:
		fmt.Fprintf(os.Stderr, "devcluster kubectl: using the cluster of this directory, not $KUBECONFIG; to use $KUBECONFIG: "+
			"devcluster kubectl --kubeconfig %s\n", shell.Quote(given))
		return file, nil
	case running:
		return "", err
	case slices.ContainsFunc(serverFlags(), func(flag string) bool { return hasFlag(args, flag) }):
		return given, nil
	}
	server, err := remoteServer(given)
	if err == nil && server != "" {
		err = fmt.Errorf("$KUBECONFIG names a cluster that is not on this machine: %s\n"+
			"remedy: to use that cluster, name it explicitly: devcluster kubectl --kubeconfig %s", server, shell.Quote(given))
	}
	return given, err
}

// remoteServer returns the server of a kubeconfig, or "" if it is on this machine.
// paths may list several files, like $KUBECONFIG.
func remoteServer(paths string) (string, error) {
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(paths)}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return "", fmt.Errorf("read kubeconfig %s: %w", paths, err)
	}
	parsed, err := url.Parse(config.Host)
	if err != nil {
		return "", fmt.Errorf("read the server in kubeconfig %s: %w", paths, err)
	}
	ip := net.ParseIP(parsed.Hostname())
	local := strings.EqualFold(parsed.Hostname(), "localhost") || ip != nil && ip.IsLoopback()
	if local && config.Proxy == nil {
		return "", nil
	}
	return config.Host, nil
}

// serverFlags returns kubectl's flags that name a context, cluster or server.
func serverFlags() []string { return []string{"--context", "--cluster", "--server", "-s"} }

func hasFlag(args []string, flag string) bool {
	return slices.ContainsFunc(beforeDashes(args), func(arg string) bool {
		return arg == flag || strings.HasPrefix(arg, flag+"=")
	})
}

// emptyClusterFlag returns the first flag that selects the cluster and has an empty
// value. The value usually comes from an unset shell variable. Kubectl would ignore
// the flag and use another cluster.
func emptyClusterFlag(args []string) (flag string, found bool) {
	args = beforeDashes(args)
	for i, arg := range args {
		name, _, joined := strings.Cut(arg, "=")
		if name != "--kubeconfig" && !slices.Contains(serverFlags(), name) {
			continue
		}
		if arg == name+"=" || !joined && i+1 < len(args) && args[i+1] == "" {
			return name, true
		}
	}
	return "", false
}

// needsCluster reports whether kubectl may access a server or read a kubeconfig
// with these arguments. If in doubt, it reports true.
func needsCluster(args []string) bool {
	args = beforeDashes(args)
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

// beforeDashes returns the arguments before "--". The arguments after it belong
// to a command to run in a container.
func beforeDashes(args []string) []string {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i]
	}
	return args
}

// nearestKubeconfig returns the kubeconfig of the nearest data directory, and
// reports whether a cluster is running on it.
func nearestKubeconfig() (file string, running bool, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false, fmt.Errorf("find the current directory: %w", err)
	}
	data, ok := instance.Nearest(dir)
	if !ok {
		return "", false, errors.New("find a cluster: no directory .devcluster here or in a parent directory, and ~/.kube/config is not used implicitly\n" +
			"remedy: start a cluster here with: devcluster up\n" +
			"        or name a kubeconfig with --kubeconfig or KUBECONFIG")
	}
	if running, err = data.Locked(); err != nil {
		return "", false, fmt.Errorf("find out whether a cluster is running on %s: %w", data.Path, err)
	}
	file = data.File("kubeconfig")
	if state, err := data.ReadState(); err == nil {
		file = state.Kubeconfig
	}
	if _, err := os.Stat(file); err != nil {
		remedy := "start the cluster with: devcluster up --data " + shell.Quote(data.Path)
		if running {
			remedy = rewriteKubeconfig(data.Path)
		}
		return "", running, fmt.Errorf("find the kubeconfig of the cluster in %s: %w\nremedy: %s", data.Path, err, remedy)
	}
	return file, running, nil
}

// rewriteKubeconfig returns the remedy for a running cluster whose kubeconfig was
// deleted.
func rewriteKubeconfig(data string) string {
	return "write the kubeconfig again by a restart, which keeps the data: devcluster down --data " + shell.Quote(data) +
		" && devcluster up --data " + shell.Quote(data)
}
