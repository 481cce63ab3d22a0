package command

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(stamped string) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  einmal version",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{cause: errors.New("no arguments are expected"), command: cmd.CommandPath()}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), describe(stamped))
			return err
		},
	}
}

// describe names the program by the version stamped on it, or else by what the Go toolchain has put into it.
func describe(version string) string {
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		version = info.Main.Version
	}
	if version == "" {
		version = "unknown"
	}
	return fmt.Sprintf("einmal %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
