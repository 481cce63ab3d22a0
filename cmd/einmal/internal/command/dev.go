package command

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/console"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/dev"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/process"
)

func newDev(self string, forceStop <-chan struct{}) *cobra.Command {
	o := dev.Options{Self: self}
	cmd := &cobra.Command{
		Use:                   "dev [flags] OPERATOR_DIR [-- OPERATOR_ARGS]",
		DisableFlagsInUseLine: true,
		Short:                 "Run an operator from its sources in a devcluster and restart it when they change",
		Long: `Dev builds the operator in OPERATOR_DIR and runs it in a devcluster: a real
Kubernetes control plane on this machine. Its nodes are simulated, or with
--node=real one node that runs containers. If none is running for the data
directory, dev starts one. Dev works on no other cluster: it does not
read KUBECONFIG or ~/.kube/config.

Dev first applies the CRDs that the operator prints and the manifests in
OPERATOR_DIR/config/rbac. The operator runs under its own ServiceAccount, so it
has the same permissions as in a real cluster. What dev and the operator write
stays in the devcluster; --fresh empties it.

When the sources change, dev rebuilds and restarts the operator. If the build or
the installation fails, the previous version keeps running. Ctrl-C stops the
operator, then the cluster if dev started it; the cluster's data is kept for the
next run. A second Ctrl-C kills everything immediately.

Standard output contains only a line to copy to other terminals:
"export KUBECONFIG=...". Everything else goes to standard error. The exit code is
0 after a clean stop, 1 after a failure and 2 for an invalid command line.`,
		Example: `  einmal dev ./operators/volumeclaim
  einmal dev --apply demo.yaml ./operators/volumeclaim
  einmal dev --fresh ./operators/volumeclaim
  einmal dev --node=real ./operators/volumeclaim
  einmal dev ./operators/volumeclaim -- --log-format json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := parseArguments(cmd, args, &o); err != nil {
				return &usageError{cause: err, command: cmd.CommandPath()}
			}
			return runDev(cmd.Context(), o, forceStop)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.Apply, "apply", nil, "`FILE`, directory or - (standard input) to apply once, after the operator has started (repeatable)")
	flags.BoolVar(&o.Fresh, "fresh", false, "start with an empty devcluster")
	flags.StringVar(&o.Node, "node", "", "`KIND` of nodes: simulated, or real for one that runs containers (default: as a devcluster that is running, else simulated)")
	flags.StringVar(&o.Data, "data", dev.DefaultData, "data `DIR` of the devcluster")
	flags.StringVar(&o.Devcluster, "devcluster", "", "`PATH` of the devcluster program (default: $EINMAL_DEVCLUSTER, next to einmal, or on the PATH)")
	flags.StringVar(&o.ServiceAccount, "service-account", "", "`NAMESPACE/NAME` of the ServiceAccount that the operator runs as (default: the only one in config/rbac)")
	return cmd
}

// parseArguments validates the arguments.
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
	}
	if err := notEmpty(cmd, "data", "devcluster", "node", "service-account"); err != nil {
		return err
	}
	if o.Node != "" && o.Node != "simulated" && o.Node != "real" {
		return fmt.Errorf("flag --node: must be simulated or real, got %q", o.Node)
	}
	o.OperatorDir, o.OperatorArgs = args[0], args[own:]
	o.Stdin, o.Stdout, o.Screen = os.Stdin, os.Stdout, os.Stderr
	o.Coloured = console.Coloured(term.IsTerminal(int(os.Stderr.Fd())), os.Getenv)
	return nil
}

// notEmpty rejects an empty value of flags, which usually comes from an unset shell variable.
func notEmpty(cmd *cobra.Command, flags ...string) error {
	for _, name := range flags {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return fmt.Errorf("flag --%s: must not be empty; leave the flag out", name)
		}
	}
	return nil
}

func runDev(ctx context.Context, o dev.Options, forceStop <-chan struct{}) error {
	spawner, err := process.NewSpawner()
	if err != nil {
		return err
	}
	defer func() { _ = spawner.Close() }()
	go func() {
		<-forceStop
		spawner.KillAll()
	}()
	err = dev.Run(ctx, spawner, o)
	select {
	case <-forceStop:
		return errors.Join(errors.New("killed all processes after a second signal"), err)
	default:
		return err
	}
}
