package einmal

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/engine"
)

// uninstallHelp is printed above the flags.
const uninstallHelp = `Takes out of the cluster what the operator has left in it: from all objects of its kinds its finalizer, its record and
other marks, and from its own namespace the ConfigMap with its watermarks and the key for what it records of Secrets.
Afterwards objects are as if they had never been handled: an operator that is installed again creates them. What
handlers did stays. Objects that are being deleted and wait for the operator go without their delete handlers; they are
named.

Stop the operator first: while it runs it puts back what is taken.

The account needs, in all namespaces that are served: get, list and patch of the operator's kinds, patch of their status; and
in the operator's own namespace: get and delete of the ConfigMap and, if it handles Secrets, of the Secret, which have the
operator's name. The operator's own account may not delete them.

The exit code is 0 when all is taken out, 1 when something failed (it can be run again), 2 for a wrong command line.

`

// uninstallFlags are the flags of the verb uninstall.
type uninstallFlags struct {
	runFlags

	dryRun bool
}

func (f *uninstallFlags) parse(args []string, failures io.Writer) error {
	flags := flag.NewFlagSet("uninstall", flag.ContinueOnError)
	flags.SetOutput(failures)
	flags.Usage = func() {
		_, _ = io.WriteString(failures, uninstallHelp)
		flags.PrintDefaults()
	}
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would be done")
	f.connection(flags)
	flags.Var(&f.namespaces, "namespace", "`name` or pattern of namespaces to do it in; can be given several times; the default is all. The operator's own ConfigMap and Secret, which hold for the others too, stay then")
	flags.StringVar(&f.stateNamespace, "state-namespace", "", "`namespace` of the operator's own ConfigMap and Secret, as for run")
	return onlyFlags(flags, args)
}

// commandUninstall takes out of the cluster what the operator has left in it.
func (op *Operator) commandUninstall(ctx context.Context, args []string, out, failures io.Writer) int {
	var flags uninstallFlags
	if code, ok := op.begin(&flags, args, failures); !ok {
		return code
	}
	config, err := op.connect(&flags.runFlags)
	if err != nil {
		_, _ = fmt.Fprintln(failures, err)
		return exitFailed
	}
	if err := op.uninstall(ctx, config, flags, out); err != nil {
		_, _ = fmt.Fprintln(failures, err)
		return exitFailed
	}
	return exitStopped
}

// errNotUninstalled tells that objects are left as they were, each of which was named.
var errNotUninstalled = errors.New("not all marks are taken out; run it again")

func (op *Operator) uninstall(ctx context.Context, config *rest.Config, flags uninstallFlags, out io.Writer) error {
	config = rest.CopyConfig(config)
	config.QPS = -1 // The API server's own fairness decides, not a client-side limit.
	op.deadlines.Apply(config)
	live, err := client.New(config, client.Options{Scheme: op.scheme})
	if err != nil {
		return fmt.Errorf("make the client: %w", err)
	}
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make the discovery client: %w", err)
	}
	work := &engine.Uninstall{
		Settings: op.settings, Live: live, Discovery: api, DryRun: flags.dryRun,
		Tell: func(line string) { _, _ = fmt.Fprintln(out, line) },
	}
	if flags.namespaces.given() {
		work.Settings.Namespaces, work.KeepBooks = flags.namespaces.parsed, true
	}
	for _, declared := range op.kinds {
		work.Kinds = append(work.Kinds, declared.kind)
	}
	watched, err := op.watched()
	if err != nil {
		return err
	}
	work.Selections = watched.selections
	sum, err := work.Run(ctx)
	said := "objects are stripped"
	if flags.dryRun {
		said = "objects would be stripped"
	}
	_, _ = fmt.Fprintf(out, "%d %s, %d of them without their delete handlers; %d failed\n", sum.Stripped, said, sum.Held, sum.Failed)
	if err == nil && sum.Failed > 0 {
		err = errNotUninstalled
	}
	return err
}
