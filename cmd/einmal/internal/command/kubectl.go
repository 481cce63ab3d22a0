package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/dev"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/reaper"
)

func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [ARGUMENTS]",
		Short: "Run kubectl against the devcluster of this directory",
		Long: `Kubectl runs the kubectl that is built into devcluster and passes it all
arguments unchanged. It uses the devcluster of the nearest ".devcluster"
directory, searching the current directory and then its parents. Use
--kubeconfig to name another cluster. The environment variable KUBECONFIG is
used only if no devcluster is running for that directory and only if its server
is on this machine.`,
		Example: `  einmal kubectl get pods -A
  einmal kubectl apply -f demo.yaml
  einmal kubectl get events --watch`,
		DisableFlagParsing: true,
		RunE:               runKubectl,
	}
}

// runKubectl replaces this process with kubectl.
func runKubectl(cmd *cobra.Command, args []string) error {
	if flag, ok := emptyClusterFlag(args); ok {
		return &usageError{cause: emptyFlag(flag), command: cmd.CommandPath()}
	}
	program, err := cluster.NewFinder("").Find()
	if err != nil {
		return err
	}
	env := os.Environ()
	if !namesKubeconfig(args) {
		file, err := chooseKubeconfig(cmd, program, args)
		switch {
		case err == nil:
			env = append(slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "KUBECONFIG=") }),
				"KUBECONFIG="+file)
		case !asksForHelp(args):
			return err
		}
	}
	if err := syscall.Exec(program, append([]string{program, "kubectl"}, args...), env); err != nil { //nolint:gosec // the user chose the program
		return fmt.Errorf("run %s kubectl: %w", program, err)
	}
	return nil
}

// chooseKubeconfig returns the kubeconfig to use when the arguments name none: that of the devcluster running for the
// nearest data directory, else $KUBECONFIG if its server is on this machine.
func chooseKubeconfig(cmd *cobra.Command, program string, args []string) (string, error) {
	file, err := nearestKubeconfig(cmd.Context(), program)
	given := os.Getenv("KUBECONFIG")
	switch {
	case given == "" || given == file:
		return file, err
	case err == nil:
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "einmal: using the devcluster of this directory, not $KUBECONFIG; to use $KUBECONFIG: "+
			"einmal kubectl --kubeconfig %s\n", cluster.Quote(given))
		return file, nil
	case namesServer(args):
		return given, nil
	}
	server, loopback, err := cluster.Server(given)
	if err != nil {
		return "", err
	}
	if !loopback {
		return "", fmt.Errorf("$KUBECONFIG names a cluster that is not on this machine: %s\n"+
			"remedy: to use that cluster, name it explicitly: einmal kubectl --kubeconfig %s", server, cluster.Quote(given))
	}
	return given, nil
}

// nearestKubeconfig returns the kubeconfig of the devcluster that is running for the nearest data directory.
func nearestKubeconfig(ctx context.Context, program string) (string, error) {
	const remedy = "remedy: start one in another terminal with `einmal dev OPERATOR_DIR` or `devcluster up`,\n" +
		"        or name a kubeconfig with --kubeconfig FILE"
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the current directory: %w", err)
	}
	data, ok := cluster.FindData(dir, dev.DefaultData)
	if !ok {
		return "", fmt.Errorf("no devcluster found: no directory %s in %s or its parents\n%s", dev.DefaultData, dir, remedy)
	}
	parentPipe, err := reaper.NewParentPipe()
	if err != nil {
		return "", err
	}
	defer func() { _ = parentPipe.Close() }()
	executable, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the einmal executable: %w", err)
	}
	status, err := cluster.ReadStatus(ctx, reaper.NewSpawner(parentPipe, executable, "reaper"), program, data)
	if err != nil {
		return "", err
	}
	if !status.Running {
		return "", fmt.Errorf("no devcluster is running for %s\n%s", data, remedy)
	}
	if status.Kubeconfig == "" {
		return "", errors.New("the devcluster running for " + data + " reports no kubeconfig")
	}
	return status.Kubeconfig, nil
}

// namesKubeconfig reports whether kubectl's arguments name a kubeconfig.
func namesKubeconfig(args []string) bool { return hasFlag(args, "--kubeconfig") }

// serverFlags returns kubectl's flags that name a context, cluster or server.
func serverFlags() []string { return []string{"--context", "--cluster", "--server", "-s"} }

// namesServer reports whether kubectl's arguments name a context, cluster or server.
func namesServer(args []string) bool {
	return slices.ContainsFunc(serverFlags(), func(flag string) bool { return hasFlag(args, flag) })
}

// emptyClusterFlag returns the first flag among kubectl's arguments that selects the cluster and has an empty value. The
// value usually comes from an unset shell variable. Kubectl would ignore the flag and use another cluster.
func emptyClusterFlag(args []string) (flag string, found bool) {
	for i, arg := range args {
		if arg == "--" {
			return "", false
		}
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

func hasFlag(args []string, flag string) bool {
	for _, arg := range args {
		if arg == "--" {
			return false
		}
		if arg == flag || strings.HasPrefix(arg, flag+"=") {
			return true
		}
	}
	return false
}

// asksForHelp reports whether kubectl's arguments only print help or completions, which needs no cluster.
func asksForHelp(args []string) bool {
	if len(args) == 0 || args[0] == "help" || args[0] == "options" || args[0] == "completion" {
		return true
	}
	for _, arg := range args {
		switch arg {
		case "--":
			return false
		case "-h", "--help":
			return true
		}
	}
	return false
}
