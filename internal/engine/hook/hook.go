// Package hook lets the test kit reach what package einmal does not export: it observes the attempts of handlers, and lets several replicas
// take part in an election in virtual time. Package einmal sets the hooks when it is initialised; only package internal/testkit and tests call
// them. See docs/decisions/0020.
package hook

import (
	"log/slog"

	"github.com/einmal-operators/einmal/internal/engine"
)

// Hooks are functions of package einmal. Their first argument is an *einmal.Operator.
type Hooks struct {
	// Observe makes the operator report each attempt, and log to the logger. It returns what the operator declares.
	Observe func(operator any, onAttempt func(engine.Attempt), log *slog.Logger) engine.Declared
	// Elect makes the operator one of several replicas of a manager that is about to be made.
	Elect func(operator any, in engine.Elected) error
}

// operators are the hooks of package einmal.
var operators Hooks //nolint:gochecknoglobals // The one hook into package einmal, which cannot be imported from here.

// Set sets the hooks. Package einmal calls it when it is initialised. The result lets it do so in a declaration.
func Set(hooks Hooks) bool {
	operators = hooks
	return true
}

// Of returns the hooks.
func Of() Hooks { return operators }
