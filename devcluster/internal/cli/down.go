package cli

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/einmal-operators/einmal/devcluster/internal/instance"
)

// downTimeout is how long "down" waits for an instance to be gone.
const downTimeout = 15 * time.Second

func newDown() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a running cluster and keep its data",
		Long: `Down tells the "devcluster up" that runs on the data directory to stop and waits
until it is gone. It succeeds as well when none is running.`,
		Example: `  devcluster down
  devcluster down --data /tmp/cluster`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := notEmpty(cmd, "data"); err != nil {
				return err
			}
			dir, err := instance.At(data)
			if err != nil {
				return err
			}
			message, err := down(dir)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), message)
			return err
		},
	}
	addDataFlag(cmd, &data)
	return cmd
}

func down(dir instance.Dir) (string, error) {
	locked, err := dir.Locked()
	if err != nil {
		return "", err
	}
	if !locked {
		return "no cluster is running on " + dir.Path, nil
	}
	state, err := dir.ReadState()
	if err != nil {
		return "", fmt.Errorf("a cluster runs on %s, but its process is not known yet: %w; try again", dir.Path, err)
	}
	err = syscall.Kill(state.PID, syscall.SIGTERM)
	if err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		return "", fmt.Errorf("stop process %d: %w", state.PID, err)
	}
	for deadline := time.Now().Add(downTimeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if locked, err = dir.Locked(); err != nil || !locked {
			return fmt.Sprintf("stopped process %d on %s", state.PID, dir.Path), err
		}
	}
	return "", fmt.Errorf("process %d still runs after %s; \"kill -9 %d\" ends it and all its components",
		state.PID, downTimeout, state.PID)
}
