// Package hook lets the test kit reach what package einmal does not export: it observes the attempts of handlers, sets times, runs the
// commands of an operator, and uninstalls one without a kubeconfig. Package einmal sets the hooks when it is initialised. Only package
// internal/testkit and tests call them. See docs/decisions/0033.
package hook

import (
	"context"
	"io"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal/internal/declaration"
)

// Hooks are functions of package einmal. Their argument operator is an *einmal.Operator.
type Hooks struct {
	// Observe makes the operator report each attempt, and log to the logger. It returns what the operator declares.
	Observe func(operator any, onAttempt func(declaration.Attempt), log *slog.Logger) declaration.Operator
	// StretchElection multiplies the times of the operator's election, so that fewer requests renew the Lease.
	StretchElection func(operator any, times int)
	// SetWatchSilence sets how long a watch may deliver nothing before it is opened again.
	SetWatchSilence func(operator any, silence time.Duration)
	// Command runs a command of the operator's program, and returns the exit code.
	Command func(ctx context.Context, operator any, out, failures io.Writer, args ...string) int
	// Uninstall does what the command uninstall does, with the API server of this configuration. The arguments are flags of that command.
	Uninstall func(ctx context.Context, operator any, config *rest.Config, out io.Writer, args ...string) error
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
