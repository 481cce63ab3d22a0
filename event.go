package einmal

import (
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// EventType is the type of a Kubernetes event.
type EventType string

// The types of Kubernetes events.
const (
	EventNormal  EventType = "Normal"
	EventWarning EventType = "Warning"
)

// Event sends a Kubernetes event about the object, as kubectl describe shows it. The reason is one word for programs,
// such as VolumeCreated; the message is for people. With args, the message is a format, as for fmt.Sprintf.
//
// Event returns at once and does not report whether the event arrives, so use events to explain, not to signal. Limits:
//
//   - Events with the same type, reason and message are counted as one event.
//   - From the tenth message with the same type and reason within ten minutes on, messages are combined into one event that has the newest.
//   - An object can have a burst of 25 events of each type, and then one every five minutes. Further events are dropped.
//   - Any other type counts as EventWarning.
//   - Of a message over 1024 bytes, the middle is left out. Recognised secrets are redacted.
//   - No events are sent about objects of kind Event, nor by handlers of that kind.
//
// The operator needs the permission to create and patch events in the object's namespace, or in default for a cluster-scoped object.
// The command rbac prints it. The limits are those of client-go's package tools/record.
func (c *Change[T]) Event(eventType EventType, reason, message string, args ...any) {
	if len(args) > 0 {
		message = fmt.Sprintf(message, args...)
	}
	c.event(nil, eventType, reason, message)
}

// EventAbout sends an event about another object, such as a child or a parent, as kubectl describe of that object shows
// it. The object needs a name, and its kind, either from its Go type or from its apiVersion and kind. Set its uid, so
// that the event is not shown for another object that gets the same name later. All else is as with Event. The error says what
// the object lacks.
func (c *Change[T]) EventAbout(about client.Object, eventType EventType, reason, message string, args ...any) error {
	if !c.driven {
		return nil
	}
	gvk, err := apiutil.GVKForObject(about, c.Client.Scheme())
	if err != nil {
		return fmt.Errorf("event about %T: %w; add its package with einmal.Scheme, or set its apiVersion and kind", about, err)
	}
	if about.GetName() == "" {
		return fmt.Errorf("event about %s: the object has no name", gvk.Kind)
	}
	if len(args) > 0 {
		message = fmt.Sprintf(message, args...)
	}
	c.event(&corev1.ObjectReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: about.GetNamespace(), Name: about.GetName(),
		UID: about.GetUID(), ResourceVersion: about.GetResourceVersion(),
	}, eventType, reason, message)
	return nil
}

// event sends an event; nil means about the handled object.
func (c *Change[T]) event(about *corev1.ObjectReference, eventType EventType, reason, message string) {
	if c.say != nil {
		c.say(about, string(eventType), reason, message)
	}
}

// WithoutEvents makes the operator send no Kubernetes events, neither those of handlers nor its own. The command rbac then
// prints no permission for events.
func WithoutEvents() OperatorOption {
	return option{name: "WithoutEvents", operator: func(op *Operator) error {
		op.withoutEvents = true
		return nil
	}}
}

// EventsFromLogs also sends what handlers write to Change.Log at this level or above as an event about the object. The
// event has the reason Logging, and the log message with its attributes. It is a Warning from slog.LevelWarn on, and
// Normal below. The limits of Event apply. By default, no log messages are sent.
func EventsFromLogs(level slog.Level) OperatorOption {
	return option{name: "EventsFromLogs", operator: func(op *Operator) error {
		op.settings.LogEvents = &level
		return nil
	}}
}
