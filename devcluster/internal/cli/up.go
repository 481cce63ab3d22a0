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

// The kinds of nodes.
const (
	simulatedNode = "simulated"
	realNode      = "real"
)

func newUp() *cobra.Command {
	o := cluster.Options{}
	exitFD, kind := -1, simulatedNode
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a cluster until Ctrl-C",
		Long: `Up runs a cluster in the foreground until Ctrl-C, SIGTERM or "devcluster down".
When the cluster is ready, up prints a line that sets KUBECONFIG to standard
output. Everything else goes to standard error. The cluster's data is kept for
the next start. The logs of the components are in the directory "logs" in the
data directory.

All servers listen only on the loopback interface, on free ports.

With --node=real, the cluster has one node whose Pods are containers. It needs
Linux, root and the programs of some packages, which it names if they are missing.
The node has a network of its own: kubectl reaches its Pods, other programs do not.
"devcluster image load" gives it images. When the cluster stops, containers get
their grace period, but at most 30 seconds.`,
		Example: `  devcluster up
  devcluster up --fresh --nodes 3
  devcluster up --data /tmp/cluster --kubeconfig /tmp/cluster.kubeconfig
  devcluster up --node=real`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Nodes < 0 || o.Nodes > maxNodes {
				return wrongUsage(cmd, fmt.Errorf("flag --nodes: must be between 0 and %d, got %d", maxNodes, o.Nodes))
			}
			if err := kindOfNode(cmd, kind, &o); err != nil {
				return err
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
	cmd.Flags().BoolVar(&o.Fresh, "fresh", false, "start with an empty cluster: delete its data, but no files that devcluster did not create")
	cmd.Flags().StringVar(&o.Kubeconfig, "kubeconfig", "",
		"`FILE` to write the kubeconfig to (default \"kubeconfig\" in the data directory)")
	cmd.Flags().IntVar(&o.Nodes, "nodes", 1, "number of simulated nodes")
	cmd.Flags().StringVar(&kind, "node", simulatedNode,
		"`KIND` of nodes: simulated, or real for one node that runs containers (Linux, root, containerd)")
	cmd.Flags().IntVar(&exitFD, "exit-with-fd", -1,
		"stop when the inherited file descriptor `N` reaches its end, "+
			"so that the cluster does not outlive the program that started it")
	return cmd
}

// kindOfNode sets the kind of nodes.
func kindOfNode(cmd *cobra.Command, kind string, o *cluster.Options) error {
	switch {
	case kind == simulatedNode:
		return nil
	case kind != realNode:
		return wrongUsage(cmd, fmt.Errorf("flag --node: must be %s or %s, got %q", simulatedNode, realNode, kind))
	case cmd.Flags().Changed("nodes"):
		return wrongUsage(cmd, fmt.Errorf("flag --nodes: must not be set with --node=%s, which makes one node", realNode))
	}
	o.Nodes, o.RealNode = 0, true
	return nil
}

// untilStopped returns a context that is canceled by SIGINT, SIGTERM or SIGHUP.
// A second signal has its default effect: it kills the process, and with it the
// components.
func untilStopped(parent context.Context) (context.Context, context.CancelFunc) {
	if parent == nil {
		parent = context.Background()
	}
	// The cluster must keep running if the reader of its output exits.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// untilEOF returns a context that is also canceled when the file descriptor
// reaches its end.
func untilEOF(parent context.Context, fd int) (context.Context, error) {
	file := os.NewFile(uintptr(fd), "exit-with-fd")
	if file == nil {
		return nil, fmt.Errorf("flag --exit-with-fd: must be a file descriptor, got %d", fd)
	}
	if _, err := file.Stat(); err != nil {
		return nil, fmt.Errorf("flag --exit-with-fd: must be an open file descriptor, got %d: %w", fd, err)
	}
	syscall.CloseOnExec(fd)
	ctx, cancel := context.WithCancel(parent)
	go func() {
		_, _ = io.Copy(io.Discard, file)
		cancel()
	}()
	return ctx, nil
}
