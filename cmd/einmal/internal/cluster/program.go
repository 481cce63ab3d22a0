package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/process"
)

// ProgramVariable is the environment variable that names the devcluster program.
const ProgramVariable = "EINMAL_DEVCLUSTER"

const (
	programName = "devcluster"

	// notRunning is the exit code of "devcluster status" if no cluster is running for the data directory.
	notRunning = 3
)

// FindProgram returns the path of the devcluster program: the one named by the flag, else by the environment variable, else
// the one next to this program, else the one on the PATH. It does not fall back from a named program to another one, which
// would hide a wrong name.
func FindProgram(flag string) (string, error) {
	by, named := "flag --devcluster", flag
	if named == "" {
		by, named = "$"+ProgramVariable, os.Getenv(ProgramVariable)
	}
	if named != "" {
		path, err := filepath.Abs(named)
		if err == nil {
			path, err = exec.LookPath(path)
		}
		if lookup, ok := errors.AsType[*exec.Error](err); ok {
			err = lookup.Err // without the path again
		}
		if err != nil {
			return "", fmt.Errorf("%s: cannot run %s: %w", by, named, err)
		}
		return path, nil
	}
	self, _ := os.Executable() // if it is unknown, only the PATH is searched
	if resolved, err := filepath.EvalSymlinks(self); err == nil {
		self = resolved
	}
	for _, name := range []string{filepath.Join(filepath.Dir(self), programName), programName} {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("find the program %s: neither next to %s nor on the PATH\n"+
		"remedy: in a clone of the repository, build it with `make build` (or `devcluster/build.sh bin/devcluster`);\n"+
		"        if it is elsewhere, name it with $%s, or in einmal dev with --devcluster PATH",
		programName, self, ProgramVariable)
}

// Status is the output of "devcluster status --output json".
type Status struct {
	Running bool `json:"running"`
	// Ready is false while a running cluster is starting.
	Ready bool `json:"ready"`
	// PID is the process ID of "devcluster up".
	PID int `json:"pid"`
	// Kubeconfig is the absolute path of the kubeconfig file, and Server the address of the API server.
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	// Version is the version of Kubernetes.
	Version string `json:"version"`
	// Node says what the nodes are.
	Node struct {
		// Kind is "simulated" or "real"; "" while a cluster is starting.
		Kind string `json:"kind"`
	} `json:"node"`
}

// ReadStatus runs "devcluster status" for a data directory.
func ReadStatus(ctx context.Context, spawner *process.Spawner, o Options) (Status, error) {
	output, err := spawner.Output(ctx, process.Command{Args: []string{o.Program, "status", "--data", o.Data, "--output", "json"}})
	if exit, ok := errors.AsType[*process.ExitError](err); ok && exit.Code == notRunning {
		return Status{}, nil
	}
	if err != nil {
		return Status{}, fmt.Errorf("get the status of the devcluster for %s: %w", o.Data, err)
	}
	var status Status
	if err := json.Unmarshal(output, &status); err != nil {
		return Status{}, fmt.Errorf("parse the output of %s status for %s: %w", o.Program, o.Data, err)
	}
	return status, nil
}

// Quote quotes a string so that a shell reads it as one word.
func Quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+,:@%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
