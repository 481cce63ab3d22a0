// Package version decides which versions of PostgreSQL the operator runs.
package version

import (
	"fmt"
	"slices"
	"strings"
)

// Supported returns the major versions that the operator runs, in ascending order.
func Supported() []string { return []string{"15", "16", "17", "18"} }

// Major returns the major version of a version: 16 for 16.4.
func Major(version string) string {
	major, _, _ := strings.Cut(version, ".")
	return major
}

// Choice is the version to run.
type Choice struct {
	// Version is the version to run. It is "" if none can run.
	Version string
	// Problem says why this is not the wanted version, and what to do. It is "" if it is.
	Problem string
	// Reason is the problem in one word, for a condition.
	Reason string
}

// Choose returns the version to run: the wanted one if it is supported and can read the data, and otherwise the running one. The argument data is the
// major version of the data in the volume, "" if there is none. The argument running is the version that ran last, or "".
func Choose(wanted, running, data string) Choice {
	if data != "" && Major(running) != data {
		running = data
	}
	switch {
	case !slices.Contains(Supported(), Major(wanted)):
		return Choice{running, fmt.Sprintf("version %s is not supported; supported are %s", wanted, strings.Join(Supported(), ", ")), "NotSupported"}
	case data != "" && Major(wanted) != data:
		return Choice{running, fmt.Sprintf("version %s cannot read the data of version %s in the volume; set spec.version to %s, or create "+
			"another Database with version %s that restores a backup: spec.bootstrap.fromBackup", wanted, data, data, wanted), "DataOfAnotherVersion"}
	}
	return Choice{Version: wanted}
}
