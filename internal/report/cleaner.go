package report

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/core/redact"
)

// longestValue is how long the text of an attribute can be, in bytes, that is logged in its own form.
const longestValue = 8192

// cleaner takes secrets out of attributes.
type cleaner struct {
	redactor *redact.Redactor
	text     func(string) string
}

func (c cleaner) attribute(given slog.Attr) slog.Attr {
	given.Value = given.Value.Resolve()
	switch given.Value.Kind() {
	case slog.KindGroup:
		given.Value = slog.GroupValue(slices.Collect(func(yield func(slog.Attr) bool) {
			for _, one := range given.Value.Group() {
				if !yield(c.attribute(one)) {
					return
				}
			}
		})...)
	case slog.KindString:
		given.Value = slog.StringValue(c.named(given.Key, given.Value.String()))
	case slog.KindAny:
		given.Value = c.any(given.Key, given.Value.Any())
	default: // Numbers, times and truths are no secrets.
	}
	return given
}

// named is a text under a name, which may say that it is secret.
func (c cleaner) named(name, text string) string {
	if text != "" && c.redactor.Secret(name) {
		return redact.Mask
	}
	return c.text(text)
}

// any is a value of whatever type. It stays as it is if nothing is secret in any form in which logs write it.
func (c cleaner) any(name string, value any) slog.Value {
	switch known := value.(type) {
	case error:
		return slog.StringValue(c.named(name, known.Error()))
	case corev1.Secret:
		return slog.StringValue("Secret " + known.Namespace + "/" + known.Name)
	case *corev1.Secret:
		if known != nil {
			return c.any(name, *known)
		}
	case *unstructured.Unstructured:
		if known != nil && known.GetKind() == "Secret" {
			return slog.StringValue("Secret " + known.GetNamespace() + "/" + known.GetName())
		}
	case map[string][]byte:
		return slog.StringValue(redact.Mask) // It is what a Secret holds.
	case []byte:
		return slog.StringValue(c.named(name, string(known)))
	}
	if value != nil && c.redactor.Secret(name) {
		return slog.StringValue(redact.Mask)
	}
	plain := fmt.Sprintf("%+v", value)
	if len(plain) > longestValue { // The log shortens texts, but no other values.
		return slog.StringValue(redact.Shorten(c.text(plain), longestValue))
	}
	clean := c.text(plain)
	if encoded, err := json.Marshal(value); err == nil {
		inJSON := string(encoded)
		if redacted := c.text(inJSON); clean != plain || redacted != inJSON {
			return slog.StringValue(redacted)
		}
	} else if clean != plain {
		return slog.StringValue(clean)
	}
	return slog.AnyValue(value)
}
