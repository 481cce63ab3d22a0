package command

import (
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
)

func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [--data DIR] [ARGUMENTS]",
		Short: "Run kubectl on the devcluster of this directory",
		Long: `Kubectl runs the kubectl that is built into devcluster ("devcluster kubectl") with
the same arguments. It uses the devcluster of the data directory DIR; --data must
be the first argument. Without it, kubectl uses the nearest ".devcluster"
directory, searching the current directory and then its parents.

It reaches no other cluster, whatever KUBECONFIG and the arguments are. For other
clusters, use kubectl itself.`,
		Example: `  einmal kubectl get pods -A
  einmal kubectl apply -f demo.yaml
  einmal kubectl --data /tmp/cluster get events --watch`,
		DisableFlagParsing: true,
		RunE:               runKubectl,
	}
}

// runKubectl replaces this process with "devcluster kubectl".
func runKubectl(_ *cobra.Command, args []string) error {
	program, err := cluster.FindProgram("")
	if err != nil {
		return err
	}
	if err := syscall.Exec(program, append([]string{program, "kubectl"}, args...), os.Environ()); err != nil { //nolint:gosec // the user chose the program
		return fmt.Errorf("run %s kubectl: %w", program, err)
	}
	return nil
}
