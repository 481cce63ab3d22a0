// Package dev implements "einmal dev": it opens a devcluster, runs an operator in it, rebuilds and restarts the operator
// when its sources change, and merges all output on one screen.
package dev

import (
	"io"
	"time"
)

// DefaultData is the default data directory of a devcluster, relative to the current directory.
const DefaultData = ".devcluster"

// ownName is the name of einmal's subdirectory in a data directory.
const ownName = "einmal"

const (
	operatorGrace = 30 * time.Second // how long an operator may take to stop
	crdsTimeout   = 30 * time.Second // how long "operator crds" may take
	crdsNotice    = 3 * time.Second  // how often einmal reports that "operator crds" is still running
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
	// Node is the kind of nodes, "simulated" or "real". The default is what a running devcluster has, else "simulated".
	Node string
	// Data is the data directory of the devcluster.
	Data string
	// Devcluster is the path of the devcluster program. If it is empty, the program is searched for.
	Devcluster string
	// ServiceAccount ("namespace/name") is the account to run the operator as. It is required if the operator's manifests
	// do not contain exactly one.
	ServiceAccount string
	// Self is the name that the user called this program by. It is used in printed commands.
	Self string
	// Stdin is read for "-".
	Stdin io.Reader
	// Stdout receives the line to copy, Screen everything else. Coloured enables colours on Screen.
	Stdout, Screen io.Writer
	Coloured       bool
}
