package einmal

import (
	"fmt"
	"log/slog"

	"github.com/einmal-operators/einmal/internal/core/notice"
)

// Severity is how much an event matters.
type Severity string

// The severities that Kubernetes knows.
const (
	Normal  Severity = notice.Normal
	Warning Severity = notice.Warning // somebody should look
)

// Event sends a Kubernetes event about the object, which kubectl describe shows: of a severity, for a reason, which is one word
// for programs such as VolumeCreated, with a message for people. With args the message is a format, as for fmt.Sprintf.
//
// It returns at once; whether the event arrives is not told, so use it to explain, not to signal. Events of the
// handler with the same severity, reason and message are counted as one within six minutes. An object has up to 25 events at once, and
// then one in five minutes; what is too much is left out and counted by einmal_events_dropped_total. Any other severity is a
// Warning; a reason of several words is joined to one; of a message over 1024 bytes the middle is left out; what is recognised
// as secret is taken out. There are no events about objects of kind Event. The operator needs the right to create and
// patch events of events.k8s.io in the object's namespace, in default for one without, as the verb rbac prints it.
func (c *Change[T]) Event(severity Severity, reason, message string, args ...any) {
	if len(args) > 0 {
		message = fmt.Sprintf(message, args...)
	}
	c.say(string(severity), reason, message)
}

// EventsFromLogs is an option of New: what handlers write to Change.Log at this level or above is sent as an event about
// the object too, with the reason Logging and the attributes in its message: a Warning from slog.LevelWarn on, Normal below. It
// is as limited as Event. The default is that no log is sent.
func EventsFromLogs(level slog.Level) Option {
	return Option{name: "EventsFromLogs", operator: func(op *Operator) error {
		op.settings.LogEvents = &level
		return nil
	}}
}
