package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/guard"
)

const (
	programName     = "devcluster"
	programVariable = "EINMAL_DEVCLUSTER"

	// notRunning is the exit code of "devcluster status" when no cluster runs for the directory.
	notRunning = 3
)

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}

// Finder finds the devcluster program.
type Finder struct {
	// Flag is what the user asked for on the command line, if anything.
	Flag string
	// Getenv reads the environment.
	Getenv func(string) string
	// Executable is the path of the running program, which devcluster may lie beside.
	Executable string
	// LookPath searches the directories of $PATH.
	LookPath func(string) (string, error)
}

// NewFinder returns a finder that looks at the surroundings of this process.
func NewFinder(flag string) Finder {
	executable, err := os.Executable()
	if err == nil {
		if resolved, err := filepath.EvalSymlinks(executable); err == nil {
			executable = resolved
		}
	}
	return Finder{Flag: flag, Getenv: os.Getenv, Executable: executable, LookPath: exec.LookPath}
}

// Find returns the path of the devcluster program: the one asked for by flag, else by environment, else the one
// beside this program, else the one on the PATH.
func (f Finder) Find() (string, error) {
	if f.Flag != "" {
		return asked("--devcluster", f.Flag)
	}
	if path := f.Getenv(programVariable); path != "" {
		return asked(programVariable, path)
	}
	if f.Executable != "" {
		if path := filepath.Join(filepath.Dir(f.Executable), programName); runnable(path) == nil {
			return path, nil
		}
	}
	if path, err := f.LookPath(programName); err == nil {
		return filepath.Abs(path)
	}
	return "", fmt.Errorf("the program %s was not found: not beside %s and not on the PATH\n"+
		"remedy: in a clone of the repository, build it with `make build` (or `devcluster/build.sh bin/devcluster`);\n"+
		"        one that lies elsewhere is named with --devcluster PATH or $%s;\n"+
		"        a cluster that you have already is used with --kubeconfig FILE or --context NAME",
		programName, f.Executable, programVariable)
}

// asked takes the program that the user named and no other, so that a wrong name is not covered up.
func asked(by, path string) (string, error) {
	if err := runnable(path); err != nil {
		return "", fmt.Errorf("%s names %s, which cannot be run: %w", by, path, err)
	}
	return filepath.Abs(path)
}

func runnable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return errors.New("it is a directory")
	}
	if info.Mode()&0o111 == 0 {
		return errors.New("it is not executable")
	}
	return nil
}

// Status is what devcluster says about the cluster of a directory.
type Status struct {
	Running bool `json:"running"`
	// Ready is false as long as a running cluster is starting; a devcluster that does not tell is ready.
	Ready      *bool  `json:"ready"`
	PID        int    `json:"pid"`
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	Version    string `json:"version"`
}

// Runner runs a program to its end and returns its output.
type Runner interface {
	Output(ctx context.Context, c guard.Command) ([]byte, error)
}

// AskStatus asks the devcluster program about the cluster of a directory.
func AskStatus(ctx context.Context, runner Runner, program, data string) (Status, error) {
	args := []string{program, "status", "--data", data, "--output", "json"}
	output, err := runner.Output(ctx, guard.Command{Args: args})
	var exit *guard.ExitError
	if errors.As(err, &exit) && exit.Code == notRunning {
		return Status{}, nil
	}
	if err != nil {
		return Status{}, fmt.Errorf("ask whether a devcluster runs for %s: %w", data, err)
	}
	var status Status
	if err := json.Unmarshal(output, &status); err != nil {
		return Status{}, fmt.Errorf("read what %s says about %s: %w", program, data, err)
	}
	return status, nil
}

// FindData returns the nearest directory of a devcluster's data, named as given, in dir or above it.
func FindData(dir, name string) (string, bool) {
	for {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return path, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}
