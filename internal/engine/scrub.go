package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/scrub"
)

// scrubbedError is an error whose text may be kept and shown. What it is can still be asked.
type scrubbedError struct {
	err  error
	text string
}

// Error is the text without secrets.
func (e *scrubbedError) Error() string { return e.text }

// Unwrap gives the error itself.
func (e *scrubbedError) Unwrap() error { return e.err }

// scrubbed takes what is recognised as secret out of the text of an error, and what the bodies hold if they are Secrets.
func (k *keeper) scrubbed(err error, bodies ...object.Body) error {
	if err == nil {
		return nil
	}
	return &scrubbedError{err: err, text: k.scrub(err.Error(), bodies...)}
}

// scrub takes what is secret out of a text.
func (k *keeper) scrub(text string, bodies ...object.Body) string {
	var known []string
	if k.kind.Secret() {
		for _, body := range bodies {
			known = append(known, scrub.Values(body)...)
		}
	}
	return k.scrubber.Text(text, known...)
}

// shown is the object as the cache has it; nil if it has it not.
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
