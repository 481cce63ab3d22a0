package einmal

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
)

// libraryLog returns the log of controller-runtime and client-go: the operator's own log, with their routine only in detail.
func (op *Operator) libraryLog() logr.Logger {
	return logr.FromSlogHandler(warnings{op.settings.Log.Handler()})
}

// warnings drops records below a warning, unless the log is in detail.
type warnings struct{ slog.Handler }

// Enabled reports whether records of the level are logged.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return w.Handler.Enabled(ctx, level) && (level >= slog.LevelWarn || w.Handler.Enabled(ctx, slog.LevelDebug))
}

// Handle logs a record, unless the operator reports the same in its own words.
func (w warnings) Handle(ctx context.Context, record slog.Record) error {
	if record.Message == "Error retrieving lease lock" && !w.Handler.Enabled(ctx, slog.LevelDebug) { // See kube.Leadership.Failed.
		return nil
	}
	return w.Handler.Handle(ctx, record) //nolint:wrapcheck // It is the handler's own.
}

// WithAttrs keeps the filter around the handler with attributes.
func (w warnings) WithAttrs(attributes []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attributes)}
}

// WithGroup keeps the filter around the handler with a group.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
