package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/uninstall"
)

// uninstallHelp is printed above the flags.
const uninstallHelp = `Removes what the operator has left in the cluster: from all objects of its kinds its finalizer, its record and other marks,
and from its state namespace its Lease, its ConfigMap with watermarks and its Secret with the key for digests of Secrets.
Afterwards objects are as if they had never been handled: an operator that is installed again creates them. What
handlers did stays. Objects that are being deleted and wait for the operator go without their delete handlers; they are
listed. CustomResourceDefinitions and what the command rbac prints stay: remove them with kubectl delete -f -

Stop the operator first: uninstall refuses while a replica holds the operator's Lease, in any namespace. If a replica was killed, it waits
until the Lease expires, by default up to 15 seconds. An operator in a manager of your own holds no such Lease. At the end uninstall looks
at all objects once more: if marks have come back, the operator still runs.

The account needs get, list and patch of the operator's kinds and patch of their status, in all namespaces that are served. Of the objects
that have the operator's name, it needs in the state namespace: get, list and delete of the Lease, list and delete of the ConfigMap and, if
the operator handles Secrets, of the Secret. If it may also get and list Leases and list ConfigMaps in all namespaces, uninstall finds an
operator that runs with another state namespace. The operator's own account may not delete them.

Exit codes:
  0  everything is removed; with -dry-run, everything could be read
  1  something failed and is left, as the output says; uninstall can be run again
  2  the command line is wrong
  3  refused, because the operator runs; nothing was changed
`

// uninstallFlags are the flags of the command uninstall.
type uninstallFlags struct {
	connectionFlags

	dryRun bool
}

func (*uninstallFlags) help() string { return uninstallHelp }

func (f *uninstallFlags) declare(set *flag.FlagSet) {
	set.BoolVar(&f.dryRun, "dry-run", false, "change nothing and print what would be done")
	f.declareServer(set)
	set.Var(&f.namespaces, "namespace", "`name` or pattern of namespaces whose objects are stripped; can be given several times; the default is all. The operator's own objects, which hold for the others too, stay then")
	set.StringVar(&f.stateNamespace, "state-namespace", "", "`namespace` of the operator's own Lease, ConfigMap and Secret, as for run")
}

// commandUninstall removes from the cluster what the operator has left in it.
func (op *Operator) commandUninstall(ctx context.Context, args []string, out, failures io.Writer) int {
	var flags uninstallFlags
	if code, ok := op.begin("uninstall", &flags, args, out, failures); !ok {
		return code
	}
	config, err := op.connect(&flags.connectionFlags)
	if err != nil {
		fail(failures, err)
		return exitFailed
	}
	err = op.uninstall(ctx, config, flags, writers{out: out, failures: failures})
	if err == nil {
		return exitOK
	}
	fail(failures, err)
	if _, held := errors.AsType[*uninstall.HeldError](err); held {
		return exitRefused
	}
	return exitFailed
}

// Uninstall does what the command uninstall does with these flags, on an API server that no kubeconfig names.
func (op *Operator) Uninstall(ctx context.Context, config *rest.Config, out io.Writer, args ...string) error {
	var flags uninstallFlags
	set := flag.NewFlagSet("uninstall", flag.ContinueOnError)
	flags.declare(set)
	if err := set.Parse(args); err != nil {
		return err //nolint:wrapcheck // It names the flag.
	}
	return op.uninstall(ctx, config, flags, writers{out: out, failures: out})
}

// writers are where a command writes results, and everything else.
type writers struct{ out, failures io.Writer }

// uninstall returns an error if not everything is removed.
func (op *Operator) uninstall(ctx context.Context, config *rest.Config, flags uninstallFlags, to writers) error {
	config = rest.CopyConfig(config)
	config.QPS = -1 // The API server's own fairness decides, not a client-side limit.
	op.Deadlines.Apply(config)
	live, err := client.New(config, client.Options{Scheme: op.Scheme})
	if err != nil {
		return withRemedy(fmt.Errorf("create client: %w", err))
	}
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("create discovery client: %w", err)
	}
	work := &uninstall.Uninstaller{
		Settings: *op.Settings, Kinds: op.Kinds, Live: live, Discovery: api, DryRun: flags.dryRun,
		Report:   func(line string) { _, _ = fmt.Fprintln(to.out, line) },
		Progress: func(line string) { _, _ = fmt.Fprintln(to.failures, line) },
	}
	if flags.namespaces.given() {
		work.Settings.Namespaces, work.KeepState = flags.namespaces.parsed, true
	}
	if work.Selections, err = op.Selections(); err != nil {
		return err
	}
	sum, err := work.Run(ctx)
	if err != nil {
		return withRemedy(err)
	}
	return summarize(sum, flags.dryRun, to.out)
}

// withRemedy adds what a person can do about a problem with the API server.
func withRemedy(err error) error {
	if problem, ok := kube.ProblemOf(err); ok && problem.Rule == "" {
		return fmt.Errorf("%w; nothing was changed; %s", err, problem.Remedy)
	} else if ok {
		return fmt.Errorf("%w; nothing was changed; grant the account %s %s (%s uninstall --help lists all rights)",
			err, problem.Rule, problem.Scope, programName())
	}
	return err
}

// summarize prints what was done, and returns an error if not all of it was.
func summarize(sum uninstall.Result, dryRun bool, out io.Writer) error { //nolint:revive // A dry run is summarized in other words.
	done := "stripped"
	if dryRun {
		done = "would be stripped"
	}
	_, _ = fmt.Fprintf(out, "objects: %d %s, %d of them without their delete handlers; failed: %d\n", sum.Stripped, done, sum.Held, sum.Failed)
	if sum.Failed == 0 {
		return nil
	}
	return fmt.Errorf("uninstall is incomplete: resolve the causes that are listed as failed, then run it again (%s uninstall --help lists the rights that it needs)",
		programName())
}
