package kube

import (
	"context"
	"log/slog"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/utils/lru"

	"github.com/einmal-operators/einmal/internal/edge/invoke"
)

// loggedWarnings is how many different warnings are kept, so that each of them is logged once.
const loggedWarnings = 1024

// miscellaneous is the code of warnings that clients show to people (RFC 7234, section 5.5).
const miscellaneous = 299

// Warnings logs each warning of the API server once for each handler: for example that the schema of a kind lacks a field, or that an
// API version is deprecated. It is safe for concurrent use.
type Warnings struct {
	log    *slog.Logger
	logged *lru.Cache
}

var _ rest.WarningHandlerWithContext = (*Warnings)(nil)

// NewWarnings returns a handler of warnings that writes to a log.
func NewWarnings(log *slog.Logger) *Warnings {
	return &Warnings{log: log, logged: lru.New(loggedWarnings)}
}

// HandleWarningHeaderWithContext logs a warning with the handler that caused it: the one that sent the request, or that has set the unknown field
// (see WithSetter).
func (w *Warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code != miscellaneous || text == "" {
		return
	}
	handler, attributes := invoke.Name(ctx), []any{"warning", text}
	if field, ok := strings.CutPrefix(text, "unknown field "); ok {
		if setter, ok := ctx.Value(setterKey{}).(func(string) string); ok {
			handler = setter(strings.Trim(field, `"`))
		}
		attributes = append(attributes, "remedy", "add the field to the CustomResourceDefinition; until then the API server does not store it")
	}
	known := [2]string{handler, text}
	if _, logged := w.logged.Get(known); logged {
		return
	}
	w.logged.Add(known, true)
	w.log.Warn("API server warning", append(attributes, "handler", handler)...)
}

// setterKey is the key of the function of WithSetter.
type setterKey struct{}

// WithSetter returns a context for a request that writes what several handlers have changed. setter returns the handler that has set a field.
func WithSetter(ctx context.Context, setter func(field string) string) context.Context {
	return context.WithValue(ctx, setterKey{}, setter)
}
