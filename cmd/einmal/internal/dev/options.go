// Package dev implements "einmal dev": it opens a cluster, runs an operator in it, rebuilds and restarts the operator
// when its sources change, and merges all output on one screen.
package dev

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// DefaultData is the default data directory of a devcluster, relative to the current directory.
const DefaultData = ".devcluster"

// ownName is the name of einmal's subdirectory in a data or cache directory.
const ownName = "einmal"

const (
	operatorGrace  = 30 * time.Second // how long an operator may take to stop
	crdsTimeout    = 30 * time.Second // how long "operator crds" may take
	crdsNotice     = 3 * time.Second  // how often einmal reports that "operator crds" is still running
	cleanUpTimeout = 60 * time.Second // how long deleting objects may take
)

// Options configure a run.
type Options struct {
	// OperatorDir is the directory of the operator's main package. OperatorArgs are passed to "operator run".
	OperatorDir  string
	OperatorArgs []string
	// Apply lists files, directories or "-" (Stdin) to apply once after the operator has started.
	Apply []string
	// Fresh starts the devcluster without the data of earlier runs.
	Fresh bool
	// Kubeconfig and Context name an existing cluster. If both are empty, a devcluster is used.
	Kubeconfig, Context string
	// Data is the data directory of the devcluster. The default is DefaultData.
	Data string
	// Devcluster is the path of the devcluster program. If it is empty, the program is searched for.
	Devcluster string
	// ServiceAccount ("namespace/name") is the account to run the operator as. It is required if the operator's manifests
	// do not contain exactly one.
	ServiceAccount string
	// YesApplyTo names the existing cluster that may be changed. If it is empty, the user is asked on the terminal.
	YesApplyTo string
	// CleanUp deletes the objects that this run created when it ends.
	CleanUp bool
	// Self is the name that the user called this program by. It is used in printed commands.
	Self string
	// Stdin is read for "-" and for answers. Terminal reports whether a person can answer on it.
	Stdin    io.Reader
	Terminal bool
	// Stdout receives the lines to copy, Screen everything else. Coloured enables colours on Screen.
	Stdout, Screen io.Writer
	Coloured       bool
	// ForceStop is closed to stop immediately, without clean-up.
	ForceStop <-chan struct{}
}

// existing reports whether the user named an existing cluster.
func (o Options) existing() bool { return o.Kubeconfig != "" || o.Context != "" }

// data returns the absolute path of the devcluster's data directory.
func (o Options) data() (string, error) {
	data := o.Data
	if data == "" {
		data = DefaultData
	}
	absolute, err := filepath.Abs(data)
	if err != nil {
		return "", fmt.Errorf("find the data directory %s: %w", data, err)
	}
	return absolute, nil
}

// directories returns the directory for the files of runs, and the directory for the locks that prevent two runs of the
// same operator in the same cluster.
//
// The files are below the data directory of the devcluster. For an existing cluster they are in the user's cache
// directory, because a data directory would look like that of a devcluster. The locks are in the user's cache directory
// if possible, so that two runs find the same lock even if they name the cluster differently.
func (o Options) directories() (files, locks string, err error) {
	data, err := o.data()
	if err != nil {
		return "", "", err
	}
	files = filepath.Join(data, ownName)
	cache, err := os.UserCacheDir()
	if err == nil {
		locks = filepath.Join(cache, ownName, "locks")
		err = os.MkdirAll(locks, 0o700)
	}
	if o.existing() && o.Data == "" {
		if err != nil {
			return "", "", fmt.Errorf("find the user's cache directory: %w; set a directory with --data", err)
		}
		return filepath.Join(cache, ownName), locks, nil
	}
	if err != nil {
		locks = filepath.Join(files, "locks")
	}
	return files, locks, nil
}
