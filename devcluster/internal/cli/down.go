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

// downTimeout is how long "down" waits until the instance has stopped. Containers
// of a real node get up to 30 seconds.
const downTimeout = 60 * time.Second

func newDown() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a running cluster and keep its data",
		Long: `Down stops the "devcluster up" that runs on the data directory and waits until it
has exited. It also succeeds if no cluster is running.`,
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
		return "", fmt.Errorf("find the process of the cluster that is starting on %s: %w; try again", dir.Path, err)
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
	return "", fmt.Errorf("stop process %d: still running after %s; to kill it and its components: kill -9 %d",
		state.PID, downTimeout, state.PID)
}
