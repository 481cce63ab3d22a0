// Package logging has the handlers through which an operator and its libraries log.
package logging

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"

	"github.com/einmal-operators/einmal/internal/core/redact"
)

// longestText is the length in bytes that a message and each text and error in the log is shortened to.
const longestText = 8192

// Bounded returns a handler that shortens texts and errors of more than 8 KiB, and passes them on.
func Bounded(handler slog.Handler) slog.Handler { return bounded{handler} }

// bounded shortens long texts, so that an error of a megabyte does not fill the log.
type bounded struct{ slog.Handler }

// Handle logs a record.
func (b bounded) Handle(ctx context.Context, given slog.Record) error {
	record := slog.NewRecord(given.Time, given.Level, redact.Shorten(given.Message, longestText), given.PC)
	given.Attrs(func(attribute slog.Attr) bool {
		record.AddAttrs(shortened(attribute))
		return true
	})
	return b.Handler.Handle(ctx, record) //nolint:wrapcheck // It is the error of the wrapped handler.
}

// WithAttrs returns a handler with more attributes.
func (b bounded) WithAttrs(given []slog.Attr) slog.Handler {
	attributes := make([]slog.Attr, len(given))
	for i, attribute := range given {
		attributes[i] = shortened(attribute)
	}
	return bounded{b.Handler.WithAttrs(attributes)}
}

// WithGroup returns a handler with a group.
func (b bounded) WithGroup(name string) slog.Handler { return bounded{b.Handler.WithGroup(name)} }

// shortened returns an attribute whose texts and errors are shortened.
func shortened(attribute slog.Attr) slog.Attr {
	attribute.Value = attribute.Value.Resolve()
	switch attribute.Value.Kind() { //nolint:exhaustive // The others are short.
	case slog.KindString:
		attribute.Value = slog.StringValue(redact.Shorten(attribute.Value.String(), longestText))
	case slog.KindGroup:
		var within []slog.Attr
		for _, one := range attribute.Value.Group() {
			within = append(within, shortened(one))
		}
		attribute.Value = slog.GroupValue(within...)
	case slog.KindAny:
		if err, is := attribute.Value.Any().(error); is && len(err.Error()) > longestText {
			attribute.Value = slog.StringValue(redact.Shorten(err.Error(), longestText))
		}
	}
	return attribute
}

// OfLibraries returns the logger of controller-runtime and client-go. It writes to the operator's log, and drops routine messages unless the
// level is debug.
func OfLibraries(handler slog.Handler) logr.Logger { return logr.FromSlogHandler(warnings{handler}) }

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
