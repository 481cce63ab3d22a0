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
	"github.com/einmal-operators/einmal/cmd/einmal/internal/guard"
)

func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [ARGUMENTS]",
		Short: "Run kubectl in the devcluster of this directory",
		Long: `Kubectl runs the kubectl of devcluster with all arguments as they are. It uses
the cluster of the nearest directory ".devcluster", in the current directory or
above it. --kubeconfig names another cluster. The environment variable
KUBECONFIG counts only if no devcluster runs for the directory, and only for a
server on this machine.`,
		Example: `  einmal kubectl get pods -A
  einmal kubectl apply -f demo.yaml
  einmal kubectl get events --watch`,
		DisableFlagParsing: true,
		RunE:               runKubectl,
	}
}

// runKubectl replaces this process by kubectl.
func runKubectl(cmd *cobra.Command, args []string) error {
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

// chooseKubeconfig returns the kubeconfig for arguments that name none: that of the devcluster that runs for the nearest
// directory, or else $KUBECONFIG if its server is on this machine.
func chooseKubeconfig(cmd *cobra.Command, program string, args []string) (string, error) {
	file, err := nearestKubeconfig(cmd.Context(), program)
	given := os.Getenv("KUBECONFIG")
	switch {
	case given == "" || given == file:
		return file, err
	case err == nil:
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "einmal: using the devcluster of this directory, not $KUBECONFIG; to use that: "+
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
			"remedy: if you mean that cluster, say so: einmal kubectl --kubeconfig %s", server, cluster.Quote(given))
	}
	return given, nil
}

// nearestKubeconfig finds the cluster that runs for the nearest directory.
func nearestKubeconfig(ctx context.Context, program string) (string, error) {
	const remedy = "remedy: start one, in another terminal: `einmal dev OPERATOR_DIR` or `devcluster up`;\n" +
		"        or name a kubeconfig with --kubeconfig FILE"
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the current directory: %w", err)
	}
	data, ok := cluster.FindData(dir, dev.DefaultData)
	if !ok {
		return "", fmt.Errorf("no devcluster was found: there is no directory %s in %s or above it\n%s", dev.DefaultData, dir, remedy)
	}
	lifeline, err := guard.NewLifeline()
	if err != nil {
		return "", err
	}
	defer func() { _ = lifeline.Close() }()
	executable, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the program einmal: %w", err)
	}
	status, err := cluster.AskStatus(ctx, guard.NewStarter(lifeline, executable, "guard"), program, data)
	if err != nil {
		return "", err
	}
	if !status.Running {
		return "", fmt.Errorf("no devcluster is running for %s\n%s", data, remedy)
	}
	if status.Kubeconfig == "" {
		return "", errors.New("the devcluster that is running for " + data + " names no kubeconfig")
	}
	return status.Kubeconfig, nil
}

// namesKubeconfig reports whether kubectl's arguments choose a kubeconfig.
func namesKubeconfig(args []string) bool { return hasFlag(args, "--kubeconfig") }

// namesServer reports whether kubectl's arguments choose a server.
func namesServer(args []string) bool {
	return hasFlag(args, "--context") || hasFlag(args, "--cluster") || hasFlag(args, "--server") || hasFlag(args, "-s")
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

// asksForHelp reports whether kubectl's arguments need no cluster.
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
