package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/reaper"
)

// ProgramVariable is the environment variable that names the devcluster program.
const ProgramVariable = "EINMAL_DEVCLUSTER"

const (
	programName = "devcluster"

	// notRunning is the exit code of "devcluster status" if no cluster is running for the data directory.
	notRunning = 3
)

// Finder finds the devcluster program.
type Finder struct {
	// Flag is the path given on the command line, or "".
	Flag string
	// Getenv reads the environment.
	Getenv func(string) string
	// Executable is the path of the running program. devcluster may be in the same directory.
	Executable string
	// LookPath searches the directories of $PATH.
	LookPath func(string) (string, error)
}

// NewFinder returns a finder for the environment of this process.
func NewFinder(flag string) Finder {
	executable, err := os.Executable()
	if err == nil {
		if resolved, err := filepath.EvalSymlinks(executable); err == nil {
			executable = resolved
		}
	}
	return Finder{Flag: flag, Getenv: os.Getenv, Executable: executable, LookPath: exec.LookPath}
}

// Find returns the path of the devcluster program: the one named by the flag, else by the environment variable, else the
// one next to this program, else the one on the PATH.
func (f Finder) Find() (string, error) {
	if f.Flag != "" {
		return explicit("flag --devcluster", f.Flag)
	}
	if path := f.Getenv(ProgramVariable); path != "" {
		return explicit("$"+ProgramVariable, path)
	}
	if f.Executable != "" {
		if path := filepath.Join(filepath.Dir(f.Executable), programName); runnable(path) == nil {
			return path, nil
		}
	}
	if path, err := f.LookPath(programName); err == nil {
		return filepath.Abs(path)
	}
	return "", fmt.Errorf("find the program %s: neither next to %s nor on the PATH\n"+
		"remedy: in a clone of the repository, build it with `make build` (or `devcluster/build.sh bin/devcluster`);\n"+
		"        if it is elsewhere, name it with $%s, or in einmal dev with --devcluster PATH",
		programName, f.Executable, ProgramVariable)
}

// explicit returns the program that the user named. It does not fall back to another one, which would hide a wrong name.
func explicit(by, path string) (string, error) {
	if err := runnable(path); err != nil {
		return "", fmt.Errorf("%s: cannot run %s: %w", by, path, err)
	}
	return filepath.Abs(path)
}

func runnable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return errors.New("is a directory")
	}
	if info.Mode()&0o111 == 0 {
		return errors.New("not executable")
	}
	return nil
}

// Status is the output of "devcluster status --output json".
type Status struct {
	Running bool `json:"running"`
	// Ready is false while a running cluster is starting. If it is absent, the cluster counts as ready.
	Ready      *bool  `json:"ready"`
	PID        int    `json:"pid"`
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	Version    string `json:"version"`
}

// Runner runs a program until it exits and returns its standard output.
type Runner interface {
	Output(ctx context.Context, c reaper.Command) ([]byte, error)
}

// ReadStatus runs "devcluster status" for a data directory.
func ReadStatus(ctx context.Context, runner Runner, program, data string) (Status, error) {
	args := []string{program, "status", "--data", data, "--output", "json"}
	output, err := runner.Output(ctx, reaper.Command{Args: args})
	var exit *reaper.ExitError
	if errors.As(err, &exit) && exit.Code == notRunning {
		return Status{}, nil
	}
	if err != nil {
		return Status{}, fmt.Errorf("get the status of the devcluster for %s: %w", data, err)
	}
	var status Status
	if err := json.Unmarshal(output, &status); err != nil {
		return Status{}, fmt.Errorf("parse the output of %s status for %s: %w", program, data, err)
	}
	return status, nil
}
