package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/redact"
)

// longestValue is how long the text of an attribute can be, in bytes, that is logged in its own form.
const longestValue = 8192

// loggedReason is the reason of events that come from the log.
const loggedReason = "Logging"

// equip gives an attempt what its handler speaks with: a log and events, both without secrets.
func (k *keeper) equip(call *Call, log *slog.Logger) {
	given := call.Given // The call replaces it while its log may be in use.
	call.Say = k.eventFunc(given)
	spoken := &handlerLog{
		next:  log.With("handler", call.ID, "reason", call.Reason, "attempt", call.Attempt).Handler(),
		clean: cleaner{redactor: k.redactor, text: func(text string) string { return k.redact(text, given) }},
	}
	if k.settings.LogEvents != nil && !k.kind.excludesEvents() {
		say := call.Say
		spoken.from, spoken.say = k.settings.LogEvents.Level(), func(kind, reason, text string) { say(nil, kind, reason, text) }
	}
	call.Log = slog.New(spoken)
}

// handlerLog is the log of one attempt of a handler. What is secret does not get through; from a level on, what is logged
// is said as an event too.
type handlerLog struct {
	next  slog.Handler
	clean cleaner
	// say sends events, of what is logged at the level from or above; nil for none.
	say  func(kind, reason, text string)
	from slog.Level
	// added are the attributes that the handler gave to its log, as events show them; within is the group that it is in.
	added, within string
}

// Enabled reports whether a record of the level is wanted.
func (h *handlerLog) Enabled(ctx context.Context, level slog.Level) bool {
	return h.said(level) || h.next.Enabled(ctx, level)
}

func (h *handlerLog) said(level slog.Level) bool { return h.say != nil && level >= h.from }

// Handle logs a record.
func (h *handlerLog) Handle(ctx context.Context, given slog.Record) error {
	record := slog.NewRecord(given.Time, given.Level, h.clean.text(given.Message), given.PC)
	given.Attrs(func(attribute slog.Attr) bool {
		record.AddAttrs(h.clean.attribute(attribute))
		return true
	})
	if h.said(record.Level) {
		kind, text := corev1.EventTypeNormal, record.Message+h.added
		if record.Level >= slog.LevelWarn {
			kind = corev1.EventTypeWarning
		}
		record.Attrs(func(attribute slog.Attr) bool {
			text += shownIn(h.within, attribute)
			return true
		})
		h.say(kind, loggedReason, text)
	}
	if !h.next.Enabled(ctx, record.Level) {
		return nil
	}
	return h.next.Handle(ctx, record)
}

// WithAttrs is the log with more attributes.
func (h *handlerLog) WithAttrs(given []slog.Attr) slog.Handler {
	more, cleaned := *h, make([]slog.Attr, len(given))
	for i, attribute := range given {
		cleaned[i] = h.clean.attribute(attribute)
		more.added += shownIn(h.within, cleaned[i])
	}
	more.next = h.next.WithAttrs(cleaned)
	return &more
}

// WithGroup is the log whose further attributes are in a group.
func (h *handlerLog) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	more := *h
	more.next, more.within = h.next.WithGroup(name), h.within+name+"."
	return &more
}

// shownIn is an attribute as text logs write it.
func shownIn(group string, attribute slog.Attr) string {
	if attribute.Value.Kind() != slog.KindGroup {
		return fmt.Sprintf(" %s%s=%v", group, attribute.Key, attribute.Value)
	}
	if attribute.Key != "" {
		group += attribute.Key + "."
	}
	var shown strings.Builder
	for _, one := range attribute.Value.Group() {
		shown.WriteString(shownIn(group, one))
	}
	return shown.String()
}

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

// generation is what an object's log has of it beside its name, where the API server counts generations.
func generation(body object.Body) []any {
	if counted, found := object.Get(body, "metadata", "generation"); found {
		return []any{"generation", counted}
	}
	return nil
}
