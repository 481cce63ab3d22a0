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
	"github.com/einmal-operators/einmal/cmd/einmal/internal/guard"
)

func newDev(self string, again <-chan struct{}) *cobra.Command {
	o := dev.Options{Self: self}
	cmd := &cobra.Command{
		Use:                   "dev [flags] OPERATOR_DIR [-- OPERATOR_ARGS]",
		DisableFlagsInUseLine: true,
		Short:                 "Run an operator from its sources in a cluster, and restart it when they change",
		Long: `Dev starts a devcluster (a real Kubernetes control plane on this machine, with
simulated nodes), or uses the one that runs already for the data directory. Then
it builds the operator in OPERATOR_DIR, installs the CRDs that the operator
prints and the manifests in OPERATOR_DIR/config/rbac, and runs the operator
under its own ServiceAccount, with the rights that it will have in a real
cluster and no others.

When the operator's sources change, dev builds and restarts it. The operator
from before keeps running if the build or the installation fails. Ctrl-C stops
the operator, then the cluster if dev started it; the cluster's data is kept for
the next time. Ctrl-C twice ends everything at once.

Dev uses an existing cluster only with --kubeconfig or --context. Before it
changes such a cluster, or any cluster whose server is not on this machine, it
says what it will apply and asks for the cluster's name; without a terminal,
--yes-apply-to must name it. What dev applied stays there: at the end, dev prints
the commands that remove what it created, and --clean-up runs them.

Standard output has only lines to copy: "export KUBECONFIG=..." for other
terminals, and at the end the commands that remove what was created. Everything
else goes to standard error. The exit code is 0 after a clean stop, 1 after a
failure, 2 for a wrong command line.`,
		Example: `  einmal dev ./operators/volumeclaim
  einmal dev --apply demo.yaml ./operators/volumeclaim
  einmal dev --fresh ./operators/volumeclaim
  einmal dev --context staging --clean-up ./operators/volumeclaim
  einmal dev ./operators/volumeclaim -- --log-format json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := takeArguments(cmd, args, &o); err != nil {
				return &usageError{cause: err, command: cmd.CommandPath()}
			}
			return runDev(cmd, o, again)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.Apply, "apply", nil, "`FILE`, directory or - to apply once the operator runs, as a user would (repeatable)")
	flags.BoolVar(&o.Fresh, "fresh", false, "begin with an empty cluster")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "use the existing cluster of this kubeconfig `FILE`")
	flags.StringVar(&o.Context, "context", "", "use the existing cluster of the context `NAME`")
	flags.StringVar(&o.YesApplyTo, "yes-apply-to", "", "change the existing cluster `NAME` without asking (its name in the kubeconfig)")
	flags.BoolVar(&o.CleanUp, "clean-up", false, "at the end, remove what this run created in the cluster")
	flags.StringVar(&o.Data, "data", "", "`DIR` of the devcluster's data (default \""+dev.DefaultData+"\")")
	flags.StringVar(&o.Devcluster, "devcluster", "", "`PATH` of the program devcluster (default: $EINMAL_DEVCLUSTER, beside einmal, on the PATH)")
	flags.StringVar(&o.ServiceAccount, "service-account", "", "`NAMESPACE/NAME` to run the operator as (default: the only one in config/rbac)")
	return cmd
}

// takeArguments checks what is not a flag, and flags that exclude each other.
func takeArguments(cmd *cobra.Command, args []string, o *dev.Options) error {
	own := len(args)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		own = dash
	}
	switch {
	case own == 0:
		return errors.New("the directory of the operator is missing")
	case own > 1:
		return fmt.Errorf("one directory is expected, not %d (%q); what is meant for the operator comes after --", own, args[:own])
	case o.Fresh && (o.Kubeconfig != "" || o.Context != ""):
		return errors.New("--fresh empties a devcluster, never an existing cluster: not together with --kubeconfig or --context")
	}
	o.OperatorDir, o.OperatorArgs = args[0], args[own:]
	o.Stdin, o.Stdout, o.Screen = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	o.Coloured = console.Coloured(isTerminal(o.Screen), os.Getenv)
	o.Terminal = isTerminal(o.Stdin) && isTerminal(o.Screen) && !slices.Contains(o.Apply, "-")
	return nil
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func runDev(cmd *cobra.Command, o dev.Options, again <-chan struct{}) error {
	lifeline, err := guard.NewLifeline()
	if err != nil {
		return err
	}
	defer func() { _ = lifeline.Close() }()
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program einmal: %w", err)
	}
	starter := guard.NewStarter(lifeline, executable, "guard")
	var killed atomic.Bool
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	o.Again = again
	go func() {
		select {
		case <-again:
			killed.Store(true)
			starter.KillAll()
		case <-done:
		}
	}()
	err = dev.Run(ctx, starter, o)
	if killed.Load() {
		return errors.Join(errors.New("everything was ended at once, as you asked"), err)
	}
	return err
}
