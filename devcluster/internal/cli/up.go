package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/einmal-operators/einmal/devcluster/internal/cluster"
)

const maxNodes = 1000

func newUp() *cobra.Command {
	o := cluster.Options{}
	exitFD := -1
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a cluster until Ctrl-C",
		Long: `Up runs a cluster in the foreground until it is told to stop by Ctrl-C, by
SIGTERM or by "devcluster down". When the cluster is ready it prints a line to
standard output that sets KUBECONFIG; everything else goes to standard error.
The data is kept for the next start. The logs of the components are files in
the directory "logs" in the data directory.

Everything listens on the loopback interface only, on free ports.`,
		Example: `  devcluster up
  devcluster up --fresh --nodes 3
  devcluster up --data /tmp/cluster --kubeconfig /tmp/cluster.kubeconfig`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Nodes < 0 || o.Nodes > maxNodes {
				return wrongUsage(cmd, fmt.Errorf("--nodes must be between 0 and %d, not %d", maxNodes, o.Nodes))
			}
			err := notEmpty(cmd, "data", "kubeconfig")
			if err != nil {
				return err
			}
			if o.Program, err = os.Executable(); err != nil {
				return err
			}
			o.Out, o.Progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
			ctx, stop := untilStopped(cmd.Context())
			defer stop()
			if exitFD >= 0 {
				if ctx, err = untilEOF(ctx, exitFD); err != nil {
					return wrongUsage(cmd, err)
				}
			}
			return cluster.Up(ctx, o)
		},
	}
	addDataFlag(cmd, &o.Data)
	cmd.Flags().BoolVar(&o.Fresh, "fresh", false, "delete the data of earlier runs first, and nothing that devcluster has not made")
	cmd.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "",
		"`file` to write the kubeconfig to (default \"kubeconfig\" in the data directory)")
	cmd.Flags().IntVar(&o.Nodes, "nodes", 1, "number of simulated nodes")
	cmd.Flags().IntVar(&exitFD, "exit-with-fd", -1,
		"stop when this inherited file descriptor `number` reaches its end, "+
			"for a program that must not leave a cluster behind")
	return cmd
}

// untilStopped returns a context that ends with a signal to stop. A second
// signal has its usual effect: it ends the process, and with it the components.
func untilStopped(parent context.Context) (context.Context, context.CancelFunc) {
	if parent == nil {
		parent = context.Background()
	}
	// Whoever reads the output may leave earlier; that is no reason to die.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// untilEOF returns a context that also ends when the descriptor does.
func untilEOF(parent context.Context, fd int) (context.Context, error) {
	file := os.NewFile(uintptr(fd), "exit-with-fd")
	if file == nil {
		return nil, fmt.Errorf("--exit-with-fd %d is not a file descriptor", fd)
	}
	if _, err := file.Stat(); err != nil {
		return nil, fmt.Errorf("--exit-with-fd %d: the descriptor is not open: %w", fd, err)
	}
	syscall.CloseOnExec(fd)
	ctx, cancel := context.WithCancel(parent)
	go func() {
		_, _ = io.Copy(io.Discard, file)
		cancel()
	}()
	return ctx, nil
}
