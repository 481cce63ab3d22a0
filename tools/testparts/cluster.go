package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kubeconfigVariable names the kubeconfig of the control plane that tests share.
const kubeconfigVariable = "EINMAL_TEST_KUBECONFIG"

// A controlPlane is a devcluster that tests share. It ends with this program, even if that is killed, because it exits at the end of its
// standard input.
type controlPlane struct {
	command    *exec.Cmd
	input      io.Closer
	directory  string
	kubeconfig string
}

// controlPlane returns the kubeconfig of the control plane that tests share, and starts it for the first caller.
func (r *runner) controlPlane(ctx context.Context) (kubeconfig string, err error) {
	if kubeconfig := os.Getenv(kubeconfigVariable); kubeconfig != "" {
		return kubeconfig, nil
	}
	if r.shared != nil {
		return r.shared.kubeconfig, nil
	}
	r.shared, err = startControlPlane(ctx)
	if err != nil {
		return "", err
	}
	return r.shared.kubeconfig, nil
}

func startControlPlane(ctx context.Context) (*controlPlane, error) {
	directory, err := os.MkdirTemp("", "einmal-cluster-")
	if err != nil {
		return nil, fmt.Errorf("create a directory for the control plane: %w", err)
	}
	data := filepath.Join(directory, "data")
	command := exec.CommandContext(ctx, devcluster(), "up", "--data", data, "--exit-with-fd", "0") //nolint:gosec // The developer names the program.
	var log bytes.Buffer
	command.Stderr = &log
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	started := &controlPlane{command, input, directory, filepath.Join(data, "kubeconfig")}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "export KUBECONFIG=") {
			go io.Copy(io.Discard, output) //nolint:errcheck // Ends with the process.
			return started, nil
		}
	}
	err = errors.Join(lines.Err(), command.Wait(), os.RemoveAll(directory))
	return nil, fmt.Errorf("the control plane ended before it was ready: %w\n%s", err, log.String())
}

// stopControlPlane stops the control plane that tests share, if there is one, and adds its CPU time to the part that uses it.
func (r *runner) stopControlPlane() {
	if r.shared == nil {
		return
	}
	_ = r.shared.input.Close()  // The process ends in any case.
	_ = r.shared.command.Wait() // It reports the end of its standard input as an error.
	_ = os.RemoveAll(r.shared.directory)
	for _, one := range parts() {
		if into := r.results[one.name]; into != nil && one.runs[0].cluster {
			into.used.cpu += cpuOf(r.shared.command)
		}
	}
	r.shared = nil
}
