package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
	"github.com/einmal-operators/einmal/devcluster/internal/realnode"
	"github.com/einmal-operators/einmal/devcluster/internal/shell"
)

func newImage() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Manage the container images of a real node",
		Args:  knownCommand,
		RunE:  knownCommand, // as for the root command
	}
	cmd.AddCommand(newImageBuild(), newImageLoad())
	return cmd
}

func newImageLoad() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "load FILE",
		Short: "Load the images of an archive",
		Long: `Load loads all images of FILE, an OCI or docker archive, into the real node of the
cluster that runs on the data directory, and prints their names. The images are
kept for the next start. Pods that use one need the imagePullPolicy IfNotPresent
or Never; IfNotPresent is the default unless the tag is "latest".`,
		Example: `  docker save example.org/app:1 -o app.tar && devcluster image load app.tar
  devcluster image load --data /tmp/cluster app.tar`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return wrongUsage(cmd, fmt.Errorf("expected one FILE, got %d arguments", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := notEmpty(cmd, "data"); err != nil {
				return err
			}
			names, err := loadImages(cmd.Context(), data, args[0])
			if err != nil {
				return err
			}
			return printLoaded(cmd, names)
		},
	}
	addDataFlag(cmd, &data)
	return cmd
}

// printLoaded prints the names of loaded images.
func printLoaded(cmd *cobra.Command, names []string) error {
	for _, name := range slices.Sorted(slices.Values(names)) {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), "loaded", name); err != nil {
			return err
		}
	}
	return nil
}

// loadImages loads an archive into the real node of the cluster that runs on a data
// directory, and returns the names of the images.
func loadImages(ctx context.Context, data, archive string) ([]string, error) {
	dir, err := instance.At(data)
	if err != nil {
		return nil, err
	}
	pid, err := nodeProcess(dir)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", archive, err)
	}
	file, err := filepath.Abs(archive)
	if err != nil {
		return nil, err
	}
	return realnode.LoadImages(ctx, pid, file)
}

// nodeProcess returns the process ID of the real node of the running cluster.
func nodeProcess(dir instance.Dir) (int, error) {
	locked, err := dir.Locked()
	if err != nil {
		return 0, err
	}
	start := "devcluster up --node=real --data " + shell.Quote(dir.Path)
	if !locked {
		return 0, fmt.Errorf("no cluster is running on %s\nremedy: start one with: %s", dir.Path, start)
	}
	state, err := dir.ReadState()
	if err != nil {
		return 0, err
	}
	if pid, found := realNodeOf(state); found {
		return pid, nil
	}
	if state.RealNode {
		return 0, errors.New("the real node is starting\nremedy: wait until the cluster is ready")
	}
	return 0, errors.New("the nodes of the cluster are simulated, and run no containers\nremedy: stop it and start it with: " + start)
}
