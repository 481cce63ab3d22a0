package einmal

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// libraryLog returns the logger of controller-runtime and client-go. It writes to the operator's log, and drops routine
// messages unless the level is debug.
func (op *Operator) libraryLog() logr.Logger {
	return logr.FromSlogHandler(warnings{op.settings.Log.Handler()})
}

// warnings drops records below the level of a warning, unless the debug level is enabled.
type warnings struct{ slog.Handler }

// Enabled reports whether records of the level are logged.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return w.Handler.Enabled(ctx, level) && (level >= slog.LevelWarn || w.Handler.Enabled(ctx, slog.LevelDebug))
}

// Handle logs a record, unless the operator logs the same error itself.
func (w warnings) Handle(ctx context.Context, record slog.Record) error {
	if record.Message == "Error retrieving lease lock" && !w.Handler.Enabled(ctx, slog.LevelDebug) { // See kube.Leadership.Failed.
		return nil
	}
	return w.Handler.Handle(ctx, record) //nolint:wrapcheck // It is the error of the wrapped handler.
}

// WithAttrs returns a handler with more attributes and the same filter.
func (w warnings) WithAttrs(attributes []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attributes)}
}

// WithGroup returns a handler with a group and the same filter.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
