package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/redact"
)

// redactedError is an error whose text may be stored and shown. errors.Is and errors.As reach the original.
type redactedError struct {
	err  error
	text string
}

// Error returns the text without secrets.
func (e *redactedError) Error() string { return e.text }

// Unwrap returns the original error.
func (e *redactedError) Unwrap() error { return e.err }

// redacted returns the error with a redacted text: without what is recognized as secret, and without the values of bodies that are Secrets.
func (k *keeper) redacted(err error, bodies ...object.Body) error {
	if err == nil {
		return nil
	}
	return &redactedError{err: err, text: k.redact(err.Error(), bodies...)}
}

// redact replaces secrets in a text, also the values of bodies that are Secrets.
func (k *keeper) redact(text string, bodies ...object.Body) string {
	var known []string
	if k.kind.Secret() {
		for _, body := range bodies {
			known = append(known, redact.Values(body)...)
		}
	}
	return k.redactor.Text(text, known...)
}

// shown returns the object that the cache has, nil for none.
func (k *keeper) shown(ctx context.Context, key types.NamespacedName) object.Body {
	cached := k.kind.New()
	if err := k.cache.Get(ctx, key, cached); err != nil {
		return nil
	}
	body, err := k.kind.Body(cached)
	if err != nil {
		return nil
	}
	return body
}
