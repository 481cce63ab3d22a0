package engine

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/redact"
)

// failedReason is the reason of events about handlers that have failed for good.
const failedReason = "HandlerFailed"

// failingReason is the reason of events about handlers that are retried.
const failingReason = "HandlerFailing"

// longestMessage is the length in bytes that a message of an event is shortened to.
const longestMessage = 1024

// eventRecorders send the events of an operator with client-go's recorder and correlator. What handlers send and what the framework
// reports have separate rate limits, so that a handler cannot suppress the framework's warnings about its object.
type eventRecorders struct{ handlers, own record.EventRecorder }

// recordEvents starts the recorders. It returns a function that stops them.
func (o *Operator) recordEvents() (*eventRecorders, func()) {
	handlers, stopHandlers := o.EventSink.Record(o.Settings.Identity)
	own, stopOwn := o.EventSink.Record(o.Settings.Identity)
	return &eventRecorders{handlers: handlers, own: own}, func() {
		stopHandlers()
		stopOwn()
	}
}

// reference is how an event refers to an object.
func (k *keeper) reference(body object.Body) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: k.kind.GVK.GroupVersion().String(), Kind: k.kind.GVK.Kind,
		Namespace: object.Text(body, "metadata", "namespace"), Name: object.Text(body, "metadata", "name"),
		UID: types.UID(object.Text(body, "metadata", "uid")), ResourceVersion: version(body),
	}
}

// excludesEvents reports whether no events are sent about objects of the kind, and none by its handlers: an event about an event, or a
// handler of events that sends one, could go on without end.
func (k Kind) excludesEvents() bool { return isEvent(k.GVK) }

func isEvent(gvk schema.GroupVersionKind) bool {
	return gvk.Kind == "Event" && (gvk.Group == "" || gvk.Group == "events.k8s.io")
}

// eventFunc returns the function that a handler sends events with. They are about the object that it was given, or about another one.
func (k *keeper) eventFunc(given object.Body) func(about *corev1.ObjectReference, eventType, reason, message string) {
	return func(about *corev1.ObjectReference, eventType, reason, message string) {
		if k.kind.excludesEvents() || about != nil && isEvent(about.GroupVersionKind()) {
			return
		}
		if about == nil {
			about = k.reference(given)
		}
		if eventType != corev1.EventTypeNormal {
			eventType = corev1.EventTypeWarning // The API server accepts no others.
		}
		k.events.handlers.Event(about, eventType, k.redact(reason, given), redact.Shorten(k.redact(message, given), longestMessage))
	}
}

// warnFailed sends an event about a handler that has failed for good.
func (p *pass) warnFailed(id, reason string) {
	p.warn(failedReason, "handler %s failed permanently and runs again only when its fields change: %s", id, reason)
}

// warn sends an event of the framework itself, which says why an object is as it is.
func (p *pass) warn(reason, format string, args ...any) {
	if !p.kind.excludesEvents() {
		p.events.own.Event(p.reference(p.body), corev1.EventTypeWarning, reason, redact.Shorten(p.redact(fmt.Sprintf(format, args...), p.body), longestMessage))
	}
}
