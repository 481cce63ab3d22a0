package main

import (
	"fmt"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/version"
)

// supported reports whether the operator runs the engine of a Database.
func supported(db *v1.Database) bool { return !versionsOf(db).None() }

// versionsOf returns the versions of a Database's engine.
func versionsOf(db *v1.Database) version.Versions { return version.Of(db.Spec.Engine) }

// engineMessage says what to use instead of an engine that the operator does not run.
func engineMessage(db *v1.Database) string {
	return fmt.Sprintf("engine %s is not supported yet; create a Database with engine postgresql", db.Spec.Engine)
}

// serverOf returns what asks the servers of a Database.
func (d *databases) serverOf(*v1.Database) engine.Server { return d.postgres }
