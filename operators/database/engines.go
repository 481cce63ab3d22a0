package main

import (
	"fmt"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/engine"
	"github.com/einmal-operators/einmal/operators/database/parameter"
	"github.com/einmal-operators/einmal/operators/database/version"
)

// supported reports whether the operator runs the engine of a Database.
func supported(db *v1.Database) bool { return !versionsOf(db).None() }

// versionsOf returns the versions of a Database's engine.
func versionsOf(db *v1.Database) version.Versions { return version.Of(db.Spec.Engine) }

// parametersOf returns which parameters a Database can set.
func parametersOf(db *v1.Database) parameter.Engine {
	if db.Spec.Engine == v1.MariaDB {
		return parameter.MariaDB()
	}
	return parameter.PostgreSQL()
}

// engineMessage says what to use instead of an engine that the operator does not run.
func engineMessage(db *v1.Database) string {
	return fmt.Sprintf("engine %s is not supported; create a Database with engine mariadb, which understands most of its SQL, or postgresql", db.Spec.Engine)
}

// clients ask the servers of databases.
type clients struct {
	postgresql engine.Replicated
	mariadb    engine.Server
}

// of returns what asks the servers of a Database.
func (c clients) of(db *v1.Database) engine.Server {
	if db.Spec.Engine == v1.MariaDB {
		return c.mariadb
	}
	return c.postgresql
}
