package report

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/redact"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// longestMessage is the length in bytes that a message of an event is shortened to.
const longestMessage = 1024

// Events send the events of an operator with client-go's recorder and correlator. What handlers send and what Einmal reports have
// separate rate limits, so that a handler cannot suppress Einmal's warnings about its object.
type Events struct{ handlers, own record.EventRecorder }

// NewEvents starts to send the events of an operator. A sink of nil sends none. The function that it returns stops it.
func NewEvents(sink *kube.EventSink, operator string) (*Events, func()) {
	handlers, stopHandlers := sink.Record(operator)
	own, stopOwn := sink.Record(operator)
	return &Events{handlers: handlers, own: own}, func() {
		stopHandlers()
		stopOwn()
	}
}

// Warn sends an event of Einmal itself, which says why an object is as it is. There are none about events.
func (e *Events) Warn(about *corev1.ObjectReference, reason, message string) {
	if !isEvent(about.GroupVersionKind()) {
		e.own.Event(about, corev1.EventTypeWarning, reason, redact.Shorten(message, longestMessage))
	}
}

// isEvent reports whether a kind is Event. No events are sent about events, and none by handlers of events: that could go on without end.
func isEvent(gvk schema.GroupVersionKind) bool {
	return gvk.Kind == "Event" && (gvk.Group == "" || gvk.Group == "events.k8s.io")
}

// reference returns how an event refers to an object of the kind.
func (k *Kind) reference(body object.Body) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: k.GVK.GroupVersion().String(), Kind: k.GVK.Kind,
		Namespace: object.Text(body, "metadata", "namespace"), Name: object.Text(body, "metadata", "name"),
		UID: types.UID(object.Text(body, "metadata", "uid")), ResourceVersion: object.Text(body, "metadata", "resourceVersion"),
	}
}

// EventFunc returns the function with which a handler sends events. They are about the object as the handler was given it, or about another
// one.
func (o Object) EventFunc(given object.Body) func(about *corev1.ObjectReference, eventType, reason, message string) {
	return func(about *corev1.ObjectReference, eventType, reason, message string) {
		if isEvent(o.kind.GVK) || about != nil && isEvent(about.GroupVersionKind()) {
			return
		}
		if about == nil {
			about = o.kind.reference(given)
		}
		if eventType != corev1.EventTypeNormal {
			eventType = corev1.EventTypeWarning // The API server accepts no others.
		}
		text := redact.Shorten(o.kind.Redact(message, given), longestMessage)
		o.kind.Events.handlers.Event(about, eventType, o.kind.Redact(reason, given), text)
	}
}

// warn sends an event of Einmal about the object.
func (o Object) warn(reason, format string, args ...any) {
	o.kind.Events.Warn(o.kind.reference(o.body), reason, o.kind.Redact(fmt.Sprintf(format, args...), o.body))
}
