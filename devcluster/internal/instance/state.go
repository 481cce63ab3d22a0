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

// State is what a running instance tells about itself.
type State struct {
	// PID is the process of "devcluster up".
	PID int `json:"pid"`
	// Ready says that everything was up once.
	Ready bool `json:"ready"`
	// Kubeconfig is the file for the user.
	Kubeconfig string `json:"kubeconfig"`
	// Server is the URL of the API server.
	Server string `json:"server"`
	// Version is the version of Kubernetes.
	Version string `json:"version"`
	// Started is the time of the start.
	Started time.Time `json:"started"`
	// Components are the child processes.
	Components []Component `json:"components,omitempty"`
}

// Component is one child process of a running instance.
type Component struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	Log  string `json:"log"`
	// Health is a URL that answers 200 while the component is well. It is
	// empty for a component that serves nothing.
	Health string `json:"health,omitempty"`
}

// ReadState returns what the last instance wrote. It says nothing about whether
// that instance still runs; Dir.Locked does.
func (d Dir) ReadState() (State, error) {
	var s State
	content, err := os.ReadFile(d.File(stateName))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(content, &s); err != nil {
		return s, fmt.Errorf("%s: %w", d.File(stateName), err)
	}
	return s, nil
}

// WriteState replaces the state at once.
func (d Dir) WriteState(s State) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	temp := d.File(stateName + ".new")
	if err := os.WriteFile(temp, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return os.Rename(temp, d.File(stateName))
}

// RemoveState deletes the state: the instance has ended in order.
func (d Dir) RemoveState() error {
	err := os.Remove(d.File(stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Nearest returns the data directory of the default name in dir or in the
// closest directory above it.
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
