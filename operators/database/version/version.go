// Package version decides which versions of an engine the operator runs.
package version

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// Versions are the versions of an engine.
type Versions struct {
	// supported are the major versions that the operator runs, in ascending order.
	supported []string
	// parts is how many numbers a major version has.
	parts int
}

// Of returns the versions of an engine. It has none of an engine that the operator does not run.
func Of(engine v1.Engine) Versions {
	switch engine {
	case v1.PostgreSQL:
		return Versions{[]string{"15", "16", "17", "18"}, 1}
	case v1.MariaDB:
		return Versions{[]string{"10.11"}, 2}
	case v1.MySQL:
	}
	return Versions{}
}

// None reports whether the operator runs no version.
func (v Versions) None() bool { return len(v.supported) == 0 }

// Major returns the major version of a version: 16 for 16.4 of PostgreSQL, and 10.11 for 10.11.6 of MariaDB.
func (v Versions) Major(version string) string {
	numbers := strings.Split(version, ".")
	return strings.Join(numbers[:min(v.parts, len(numbers))], ".")
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
func (v Versions) Choose(wanted, running, data string) Choice {
	if data != "" && v.Major(running) != data {
		running = data
	}
	switch {
	case data != "" && v.Major(data+".0") != data: // PostgreSQL has 16, and MariaDB 10.11.
		return Choice{"", fmt.Sprintf("the volume holds data of version %s of another engine: create a Database with that engine, or choose another name "+
			"for this one", data), "DataOfAnotherEngine"}
	case !slices.Contains(v.supported, v.Major(wanted)):
		return Choice{running, fmt.Sprintf("version %s is not supported; supported are %s", wanted, strings.Join(v.supported, ", ")), "NotSupported"}
	case data != "" && v.Major(wanted) != data:
		return Choice{running, fmt.Sprintf("version %s cannot read the data of version %s in the volume; set spec.version to %s, or create "+
			"another Database with version %s that restores a backup: spec.bootstrap.fromBackup", wanted, data, data, wanted), "DataOfAnotherVersion"}
	}
	return Choice{Version: wanted}
}
