package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/console"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/dev"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/reaper"
)

func newDev(self string, forceStop <-chan struct{}) *cobra.Command {
	o := dev.Options{Self: self}
	cmd := &cobra.Command{
		Use:                   "dev [flags] OPERATOR_DIR [-- OPERATOR_ARGS]",
		DisableFlagsInUseLine: true,
		Short:                 "Run an operator from its sources in a cluster and restart it when they change",
		Long: `Dev builds the operator in OPERATOR_DIR and runs it in a cluster. Before that, it
applies the CRDs that the operator prints and the manifests in
OPERATOR_DIR/config/rbac. The operator runs under its own ServiceAccount, so it
has the same permissions as in a real cluster.

Unless --kubeconfig or --context names an existing cluster, dev uses a
devcluster: a real Kubernetes control plane on this machine with simulated
nodes. If none is running for the data directory, dev starts one.

When the sources change, dev rebuilds and restarts the operator. If the build or
the installation fails, the previous version keeps running. Ctrl-C stops the
operator, then the cluster if dev started it; the cluster's data is kept for the
next run. A second Ctrl-C kills everything immediately.

Before dev changes an existing cluster, or any cluster whose server is not on
this machine, it lists the objects that it will apply and asks for the cluster's
name. Without a terminal, --yes-apply-to must name the cluster. The applied
objects stay in the cluster. At the end, dev prints commands that delete the
objects it created; with --clean-up, it deletes them itself.

Standard output contains only lines to copy: "export KUBECONFIG=..." for other
terminals, unless the current context of that file is another one, and, at the
end, the commands that delete the created objects.
Everything else goes to standard error. The exit code is 0 after a clean stop,
1 after a failure and 2 for an invalid command line.`,
		Example: `  einmal dev ./operators/volumeclaim
  einmal dev --apply demo.yaml ./operators/volumeclaim
  einmal dev --fresh ./operators/volumeclaim
  einmal dev --context staging --clean-up ./operators/volumeclaim
  einmal dev ./operators/volumeclaim -- --log-format json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := parseArguments(cmd, args, &o); err != nil {
				return &usageError{cause: err, command: cmd.CommandPath()}
			}
			return runDev(cmd, o, forceStop)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.Apply, "apply", nil, "`FILE`, directory or - (standard input) to apply once, after the operator has started (repeatable)")
	flags.BoolVar(&o.Fresh, "fresh", false, "start with an empty devcluster")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "use the existing cluster of the kubeconfig `FILE`")
	flags.StringVar(&o.Context, "context", "", "use the existing cluster of the kubeconfig context `NAME`")
	flags.StringVar(&o.YesApplyTo, "yes-apply-to", "", "change the existing cluster `NAME`, as the kubeconfig names it, without asking")
	flags.BoolVar(&o.CleanUp, "clean-up", false, "at the end, delete the objects that this run created in the cluster")
	flags.StringVar(&o.Data, "data", "", "data `DIR` of the devcluster (default \""+dev.DefaultData+"\")")
	flags.StringVar(&o.Devcluster, "devcluster", "", "`PATH` of the devcluster program (default: $EINMAL_DEVCLUSTER, next to einmal, or on the PATH)")
	flags.StringVar(&o.ServiceAccount, "service-account", "", "`NAMESPACE/NAME` of the ServiceAccount that the operator runs as (default: the only one in config/rbac)")
	return cmd
}

// parseArguments validates the positional arguments and rejects flags that exclude each other.
func parseArguments(cmd *cobra.Command, args []string, o *dev.Options) error {
	own := len(args)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		own = dash
	}
	switch {
	case own == 0:
		return errors.New("missing argument OPERATOR_DIR")
	case own > 1:
		return fmt.Errorf("expected one OPERATOR_DIR, got %d (%q); put arguments for the operator after --", own, args[:own])
	case args[0] == "":
		return errors.New("argument OPERATOR_DIR: must not be empty; name the directory of the operator's main package")
	case o.Fresh && (o.Kubeconfig != "" || o.Context != ""):
		return errors.New("flag --fresh: cannot be combined with --kubeconfig or --context: it only empties a devcluster")
	}
	if err := notEmpty(cmd, "kubeconfig", "context", "yes-apply-to", "data", "devcluster", "service-account"); err != nil {
		return err
	}
	o.OperatorDir, o.OperatorArgs = args[0], args[own:]
	o.Stdin, o.Stdout, o.Screen = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	o.Coloured = console.Coloured(isTerminal(o.Screen), os.Getenv)
	o.Terminal = isTerminal(o.Stdin) && isTerminal(o.Screen) && !slices.Contains(o.Apply, "-")
	return nil
}

// notEmpty rejects an empty value of flags, which usually comes from an unset shell variable. It would count as a missing
// flag, so dev would use another cluster than the one meant.
func notEmpty(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return emptyFlag("--" + name)
		}
	}
	return nil
}

// emptyFlag returns the error for a flag with an empty value.
func emptyFlag(name string) error {
	return fmt.Errorf("flag %s: must not be empty; leave the flag out", name)
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func runDev(cmd *cobra.Command, o dev.Options, forceStop <-chan struct{}) error {
	parentPipe, err := reaper.NewParentPipe()
	if err != nil {
		return err
	}
	defer func() { _ = parentPipe.Close() }()
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the einmal executable: %w", err)
	}
	spawner := reaper.NewSpawner(parentPipe, executable, "reaper")
	var killed atomic.Bool
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	o.ForceStop = forceStop
	go func() {
		select {
		case <-forceStop:
			killed.Store(true)
			spawner.KillAll()
		case <-done:
		}
	}()
	err = dev.Run(ctx, spawner, o)
	if killed.Load() {
		return errors.Join(errors.New("killed all processes after a second signal"), err)
	}
	return err
}
