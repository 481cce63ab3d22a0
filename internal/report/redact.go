package report

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// WithText returns an error with another text. errors.Is and errors.As reach the original.
func WithText(err error, text string) error { return &redactedError{err: err, text: text} }

// RedactError returns the error with a redacted text, and nil for nil: see Redact.
func (k *Kind) RedactError(err error, bodies ...object.Body) error {
	if err == nil {
		return nil
	}
	return WithText(err, k.Redact(err.Error(), bodies...))
}

// Redact replaces secrets in a text: what is recognized as secret, and if the kind is Secret also the values of the bodies.
func (k *Kind) Redact(text string, bodies ...object.Body) string {
	var known []string
	if k.GVK.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		for _, body := range bodies {
			known = append(known, redact.Values(body)...)
		}
	}
	return k.Redactor.Text(text, known...)
}
