// Package dev is "einmal dev": a cluster, an operator in it that is rebuilt and restarted when its sources change,
// and one screen for all of it.
package dev

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// DefaultData is the name of a devcluster's directory, in the directory that it is started in.
const DefaultData = ".devcluster"

const (
	operatorGrace = 30 * time.Second // what an operator has to finish in
	crdsTimeout   = 30 * time.Second // what "operator crds" may take
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
	// Self is the command line name of this program, for what is said about it.
	Self string
	// Stdin is read for "-"; Stdout is the screen, Coloured tells whether it can show colours.
	Stdin    io.Reader
	Stdout   io.Writer
	Coloured bool
}

// existing tells whether the user asked for a cluster that is there already.
func (o Options) existing() bool { return o.Kubeconfig != "" || o.Context != "" }

// data returns the absolute path of the devcluster's directory.
func (o Options) data() (string, error) {
	data := o.Data
	if data == "" {
		data = DefaultData
	}
	absolute, err := filepath.Abs(data)
	if err != nil {
		return "", fmt.Errorf("finding the data directory %s: %w", data, err)
	}
	return absolute, nil
}

// workplace holds what is made of one operator: its program, its kubeconfig and its token.
type workplace struct {
	binary, kubeconfig, token string
}

// newWorkplace makes the directory of an operator's workplace. It is beneath that of the devcluster; with an existing
// cluster it is in the user's cache, so that no directory comes to look like that of a devcluster.
func newWorkplace(o Options, operatorDir string) (workplace, error) {
	root, err := o.data()
	if o.existing() && o.Data == "" {
		root, err = os.UserCacheDir()
	}
	if err != nil {
		return workplace{}, fmt.Errorf("finding a directory for the operator's program (--data names one): %w", err)
	}
	sum := sha256.Sum256([]byte(operatorDir))
	name := filepath.Base(operatorDir)
	dir := filepath.Join(root, "einmal", name+"-"+hex.EncodeToString(sum[:4]))
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o700); err != nil {
		return workplace{}, fmt.Errorf("making a directory for the operator's program: %w", err)
	}
	return workplace{
		binary:     filepath.Join(dir, "bin", name),
		kubeconfig: filepath.Join(dir, "kubeconfig"),
		token:      filepath.Join(dir, "token"),
	}, nil
}
