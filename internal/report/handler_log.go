package report

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// loggedReason is the reason of events that come from the log.
const loggedReason = "Logging"

// HandlerLog returns the log of an attempt. What is secret does not get into it: given is the object as the handler was given it.
func (o Object) HandlerLog(run handler.Run, given object.Body) *slog.Logger {
	spoken := &handlerLog{
		next:  o.Log.With("handler", run.ID, "reason", run.Reason, "attempt", run.Attempt).Handler(),
		clean: cleaner{redactor: o.kind.Redactor, text: func(text string) string { return o.kind.Redact(text, given) }},
	}
	if o.kind.LogEvents != nil && !isEvent(o.kind.GVK) {
		send := o.EventFunc(given)
		spoken.from, spoken.say = o.kind.LogEvents.Level(), func(eventType, reason, text string) { send(nil, eventType, reason, text) }
	}
	return slog.New(spoken)
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
