package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const stateName = "instance.json"

// State describes a running instance.
type State struct {
	// PID is the process ID of "devcluster up".
	PID int `json:"pid"`
	// Ready reports whether the cluster has become ready.
	Ready bool `json:"ready"`
	// Kubeconfig is the path of the user's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Server is the URL of the API server.
	Server string `json:"server"`
	// Version is the version of Kubernetes.
	Version string `json:"version"`
	// Started is the start time.
	Started time.Time `json:"started"`
	// RealNode reports whether the cluster has a node that runs containers, not simulated ones.
	RealNode bool `json:"realNode,omitempty"`
	// Components are the child processes.
	Components []Component `json:"components,omitempty"`
}

// Component is one child process of a running instance.
type Component struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	Log  string `json:"log"`
	// Health is a URL that returns status 200 while the component is healthy. It
	// is empty for a component without a server.
	Health string `json:"health,omitempty"`
}

// ReadState returns the state that the last instance wrote. Use Locked to find out
// whether that instance is still running.
func (d Dir) ReadState() (State, error) {
	var s State
	content, err := os.ReadFile(d.File(stateName))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(content, &s); err != nil {
		return s, fmt.Errorf("parse %s: %w", d.File(stateName), err)
	}
	return s, nil
}

// WriteState replaces the state atomically.
func (d Dir) WriteState(s State) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	temp := d.File(stateName + ".new")
	if err := os.WriteFile(temp, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return os.Rename(temp, d.File(stateName))
}

// RemoveState deletes the state after a clean exit of the instance.
func (d Dir) RemoveState() error {
	err := os.Remove(d.File(stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Nearest returns the nearest data directory with the default name, searching dir
// and then its parents.
func Nearest(dir string) (Dir, bool) {
	for {
		d := Dir{Path: filepath.Join(dir, DefaultName)}
		if d.Ours() {
			return d, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return Dir{}, false
		}
		dir = parent
	}
}
