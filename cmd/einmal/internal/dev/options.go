// Package dev is "einmal dev": a cluster, an operator in it that is rebuilt and restarted when its sources change,
// and one screen for all of it.
package dev

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// DefaultData is the name of a devcluster's directory, in the directory that it is started in.
const DefaultData = ".devcluster"

// ownName is the name of the directory in a data or cache directory that holds the files of einmal.
const ownName = "einmal"

const (
	operatorGrace  = 30 * time.Second // how long an operator may take to end
	crdsTimeout    = 30 * time.Second // how long "operator crds" may take
	crdsNotice     = 3 * time.Second  // how often einmal reports that "operator crds" has not ended
	cleanUpTimeout = 60 * time.Second // how long the removal of objects may take
)

// Options say what to do.
type Options struct {
	// OperatorDir is the directory of the operator's main package; OperatorArgs go to "operator run".
	OperatorDir  string
	OperatorArgs []string
	// Apply lists the files, directories or "-" to apply once, as a user would.
	Apply []string
	// Fresh asks for an empty devcluster.
	Fresh bool
	// Kubeconfig and Context name an existing cluster; with neither, a devcluster is used.
	Kubeconfig, Context string
	// Data is the directory of the devcluster; empty means DefaultData.
	Data string
	// Devcluster is the path of the devcluster program, if it is not to be looked for.
	Devcluster string
	// ServiceAccount ("namespace/name") chooses what to run the operator as, where its manifests do not.
	ServiceAccount string
	// YesApplyTo names the existing cluster that may be changed; empty means to ask on the terminal.
	YesApplyTo string
	// CleanUp asks to remove at the end what this run created in the cluster.
	CleanUp bool
	// Self is the command line name of this program, for what is said about it.
	Self string
	// Stdin is read for "-" and for answers; Terminal reports whether a person can answer there.
	Stdin    io.Reader
	Terminal bool
	// Stdout takes results, lines to copy. Screen takes everything else; Coloured reports whether it can show colours.
	Stdout, Screen io.Writer
	Coloured       bool
	// Again is closed when everything is to end at once.
	Again <-chan struct{}
}

// existing reports whether the user asked for a cluster that is there already.
func (o Options) existing() bool { return o.Kubeconfig != "" || o.Context != "" }

// data returns the absolute path of the devcluster's directory.
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

// directories returns the directory for the files of runs, and the one for the locks that keep two runs apart.
//
// The files are below the data directory of the devcluster. With an existing cluster they are in the user's cache, so
// that no directory looks like that of a devcluster. The locks are in the user's cache if possible: there they are found
// however the cluster was named.
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
			return "", "", fmt.Errorf("find a directory for the operator's program (--data names one): %w", err)
		}
		return filepath.Join(cache, ownName), locks, nil
	}
	if err != nil {
		locks = filepath.Join(files, "locks")
	}
	return files, locks, nil
}
