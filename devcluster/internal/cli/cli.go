// Package cli is the command line of devcluster.
package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/version"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
	"github.com/einmal-operators/einmal/devcluster/internal/supervise"
)

// Programs are the parts of the binary that the command line hands over to.
type Programs struct {
	// Component runs the named component and returns the exit code.
	Component func(name string, args []string) int
	// Kubectl runs kubectl; when kubectl fails it ends the process.
	Kubectl func(args []string)
}

// shortCommit is how many characters of a commit are printed.
const shortCommit = 12

// exitError carries an exit code other than 1. It prints nothing by itself.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the command line and returns the exit code. The binary is kubectl
// when it is called by that name.
func Main(args []string, programs Programs) int {
	if filepath.Base(args[0]) == "kubectl" {
		return runKubectl(args[1:], programs)
	}
	// These two take the rest of the line as it is, with --help and all, so
	// they do not go through this program's own flags.
	if len(args) > 1 && args[1] == "kubectl" {
		return runKubectl(args[2:], programs)
	}
	if len(args) > 2 && args[1] == "component" {
		if err := supervise.FollowParent(); err != nil {
			fmt.Fprintln(os.Stderr, "devcluster:", err)
			return codeUsage
		}
		return programs.Component(args[2], args[3:])
	}
	// Kubernetes' packages add flags of their own to the global set, and cobra
	// would show them with every command of this program.
	pflag.CommandLine = pflag.NewFlagSet(args[0], pflag.ContinueOnError)
	root := newRoot(programs)
	root.SetArgs(args[1:])
	err := root.Execute()
	var exit exitError
	var wrong *usageError
	switch {
	case err == nil:
		return codeOK
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &wrong):
		fmt.Fprintf(os.Stderr, "%s: %v\nSee '%s --help'.\n", wrong.command, err, wrong.command)
		return codeUsage
	default:
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		return codeFailure
	}
}

func newRoot(programs Programs) *cobra.Command {
	root := &cobra.Command{
		Use:   "devcluster",
		Short: "A Kubernetes cluster for development, in one program",
		Long: `devcluster runs etcd and the Kubernetes API server, controller manager and
scheduler on this machine, with simulated nodes and volumes and without
containers or root. Pods are scheduled and become ready, but nothing runs in
them.

The exit code is 0 after success, 1 after a failure and 2 for a wrong command
line; that of "status" is 3 when no cluster runs.`,
		Example: `  devcluster up                     # in one terminal; runs until Ctrl-C
  devcluster kubectl get nodes      # in another one, same directory`,
		Version:           versionText(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              knownCommand,
		RunE:              knownCommand, // makes cobra look at the arguments; it never succeeds
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(wrongUsage)
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(newUp(), newDown(), newStatus(), newKubectl(programs), newVersion())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of this program and of the Kubernetes in it",
		Example: "  devcluster version",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionText())
			return err
		},
	}
}

// versionText names the program, its version and commit, and the version of
// Kubernetes in it.
func versionText() string {
	program, commit := "(devel)", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			program = info.Main.Version
		}
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				commit = setting.Value[:min(shortCommit, len(setting.Value))]
			case setting.Key == "vcs.modified" && setting.Value == "true":
				commit += " (modified)"
			}
		}
	}
	v := version.Get()
	return fmt.Sprintf("devcluster %s, commit %s, with Kubernetes %s, %s, %s", program, commit, v.GitVersion, v.GoVersion, v.Platform)
}

func addDataFlag(cmd *cobra.Command, data *string) {
	cmd.Flags().StringVar(data, "data", instance.DefaultName, "data `directory` of the cluster")
}
