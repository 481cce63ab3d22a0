// Package cli implements the command line of devcluster.
package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/component-base/version"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
	"github.com/einmal-operators/einmal/devcluster/internal/supervise"
)

// Programs are the other programs in the binary.
type Programs struct {
	// Component runs the named component and returns the exit code.
	Component func(name string, args []string) int
	// Kubectl runs kubectl on the API server of a cluster. If no cluster was found,
	// missing is the reason. It exits the process if kubectl fails.
	Kubectl func(server string, missing error, args []string)
}

// shortCommit is how many characters of a commit are printed.
const shortCommit = 12

// exitError ends the program with an exit code and without a message.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the command line and returns the exit code. If the binary is called
// by the name kubectl, it runs kubectl.
func Main(args []string, programs Programs) int {
	if filepath.Base(args[0]) == "kubectl" {
		return runKubectl(args[1:], programs)
	}
	// These two commands receive the remaining arguments unchanged, including
	// --help, so cobra must not parse them.
	if len(args) > 1 && args[1] == "kubectl" {
		return runKubectl(args[2:], programs)
	}
	if len(args) > 2 && args[1] == "component" {
		if err := supervise.ExitWithParent(); err != nil {
			fmt.Fprintln(os.Stderr, "devcluster:", err)
			return codeUsage
		}
		return programs.Component(args[2], args[3:])
	}
	// Packages of Kubernetes add flags to the global flag set, and cobra would
	// show them with every command.
	pflag.CommandLine = pflag.NewFlagSet(args[0], pflag.ContinueOnError)
	root := newRoot(programs)
	root.SetArgs(args[1:])
	return report(root.Execute())
}

// report prints an error and returns the exit code.
func report(err error) int {
	var exit exitError
	var wrong *usageError
	switch {
	case err == nil:
		return codeOK
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &wrong):
		fmt.Fprintf(os.Stderr, "%s: %v\nsee '%s --help'\n", wrong.command, err, wrong.command)
		return codeUsage
	default:
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		return codeFailure
	}
}

func newRoot(programs Programs) *cobra.Command {
	root := &cobra.Command{
		Use:   "devcluster",
		Short: "Run a Kubernetes cluster for development",
		Long: `devcluster runs etcd and the Kubernetes API server, controller manager and
scheduler on this machine, without containers or root. Nodes and volumes are
simulated: Pods are scheduled and become ready, but nothing runs in them. With
"up --node=real", one node runs Pods as containers.

The exit code is 0 after success, 1 after a failure and 2 for an invalid command
line. "status" exits with 3 if no cluster is running.`,
		Example: `  devcluster up                     # in one terminal; runs until Ctrl-C
  devcluster kubectl get nodes      # in another terminal, same directory`,
		Version:           versionText(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              knownCommand,
		RunE:              knownCommand, // makes cobra validate the arguments; it never succeeds
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(wrongUsage)
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(newHelp())
	root.AddCommand(newUp(), newDown(), newStatus(), newKubectl(programs), newImage(), newVersion())
	return root
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			return found.Help()
		},
	}
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the versions of devcluster and Kubernetes",
		Example: "  devcluster version",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionText())
			return err
		},
	}
}

// versionText returns the version and commit of devcluster and the version of
// Kubernetes.
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
	cmd.Flags().StringVar(data, "data", instance.DefaultName, "data `DIR` of the cluster")
}
