// Package cli is the command line of devcluster.
package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
			return 2
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
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	default:
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		return 1
	}
}

func newRoot(programs Programs) *cobra.Command {
	root := &cobra.Command{
		Use:   "devcluster",
		Short: "A Kubernetes cluster for development, in one program",
		Long: `devcluster runs etcd and the Kubernetes API server, controller manager and
scheduler on this machine, with simulated nodes and volumes and without
containers or root. Pods are scheduled and become ready, but nothing runs in
them.`,
		Example: `  devcluster up                     # in one terminal; runs until Ctrl-C
  devcluster kubectl get nodes      # in another one, same directory`,
		Version:           versionText(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(newUp(), newDown(), newStatus(), newKubectl(programs), newVersion())
	return root
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of Kubernetes in this program",
		Example: "  devcluster version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionText())
			return err
		},
	}
}

func versionText() string {
	v := version.Get()
	return fmt.Sprintf("devcluster with Kubernetes %s, %s, %s", v.GitVersion, v.GoVersion, v.Platform)
}

func addDataFlag(cmd *cobra.Command, data *string) {
	cmd.Flags().StringVar(data, "data", instance.DefaultName, "data `directory` of the cluster")
}
