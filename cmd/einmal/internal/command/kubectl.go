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
above it, unless --kubeconfig or the environment variable KUBECONFIG names a
kubeconfig.`,
		Example: `  einmal kubectl get pods -A
  einmal kubectl apply -f demo.yaml
  einmal kubectl get events --watch`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runKubectl(cmd.Context(), args)
		},
	}
}

// runKubectl replaces this process by kubectl.
func runKubectl(ctx context.Context, args []string) error {
	program, err := cluster.NewFinder("").Find()
	if err != nil {
		return err
	}
	env := os.Environ()
	if os.Getenv("KUBECONFIG") == "" && !namesKubeconfig(args) {
		file, err := nearestKubeconfig(ctx, program)
		switch {
		case err == nil:
			env = append(slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "KUBECONFIG=") }),
				"KUBECONFIG="+file)
		case !asksForHelp(args):
			return err
		}
	}
	if err := syscall.Exec(program, append([]string{program, "kubectl"}, args...), env); err != nil { //nolint:gosec // the user chose the program
		return fmt.Errorf("running %s kubectl: %w", program, err)
	}
	return nil
}

// nearestKubeconfig finds the cluster that runs for the nearest directory.
func nearestKubeconfig(ctx context.Context, program string) (string, error) {
	const remedy = "remedy: start one, in another terminal: `einmal dev OPERATOR_DIR` or `devcluster up`;\n" +
		"        or name a kubeconfig with --kubeconfig or $KUBECONFIG"
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the current directory: %w", err)
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
		return "", fmt.Errorf("finding the program einmal: %w", err)
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

// namesKubeconfig tells whether kubectl's arguments choose a cluster.
func namesKubeconfig(args []string) bool {
	for _, arg := range args {
		if arg == "--" {
			return false
		}
		if arg == "--kubeconfig" || strings.HasPrefix(arg, "--kubeconfig=") {
			return true
		}
	}
	return false
}

// asksForHelp tells whether kubectl's arguments need no cluster.
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
