package command

import (
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(stamped string) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the name, version and commit of this program",
		Example: "  einmal version",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{cause: fmt.Errorf("unexpected argument %q", args[0]), command: cmd.CommandPath()}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), describe(stamped))
			return err
		},
	}
}

// describe returns the name, version and commit of the program. The version set by the linker takes precedence over the
// Go build information.
func describe(version string) string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if version == "" {
			version = info.Main.Version
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				commit = setting.Value
			}
		}
	}
	if version == "" {
		version = "unknown"
	}
	if commit == "" {
		commit = commitOf(version)
	}
	return fmt.Sprintf("einmal %s, commit %s, %s, %s/%s", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commitOf returns the commit in a version of "git describe" or in a Go pseudo-version, or "unknown".
func commitOf(version string) string {
	found := regexp.MustCompile(`(?:^|-g|-)([0-9a-f]{7,40})(?:-dirty|\+dirty)?$`).FindStringSubmatch(version)
	if found == nil {
		return "unknown"
	}
	return found[1]
}
