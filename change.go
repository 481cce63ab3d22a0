package einmal

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/objects"
)

// Reason says why a handler runs, or for OnEvent, what happened to the object.
type Reason string

// The reasons of all verbs except OnEvent. To find out whether an object was handled before, test the Reason, not Old.
const (
	ReasonCreate Reason = Reason(cause.Create) // the object was never handled, or its creation is not finished
	ReasonUpdate Reason = Reason(cause.Update) // something that the handler compares has changed since it last succeeded
	ReasonDelete Reason = Reason(cause.Delete) // the object is being deleted and waits for the handler
	ReasonResume Reason = Reason(cause.Resume) // an earlier process handled the object, and this process sees it for the first time

	ReasonReconcile Reason = Reason(cause.Reconcile) // first run in this process, or the view or a related object has changed
	ReasonTimer     Reason = Reason(cause.Timer)     // the next run of a timer is due
	ReasonDaemon    Reason = Reason(cause.Daemon)    // the object exists and matches the filters of the daemon
)

// The reasons of OnEvent handlers: they say what happened to the object.
const (
	WatchListed   Reason = Reason(objects.Listed)   // the object existed when this process started to watch
	WatchAdded    Reason = Reason(objects.Added)    // the object was created
	WatchModified Reason = Reason(objects.Modified) // something in the object has changed
	WatchDeleted  Reason = Reason(objects.Deleted)  // the object is gone; Change.Object is its last known state
)

// DiffOp is the operation of a Difference.
type DiffOp string

// The operations of differences. A list counts as one field, so a change of one item changes the whole list.
const (
	DiffAdded   DiffOp = object.Added   // the field did not exist before
	DiffChanged DiffOp = object.Changed // the field has another value
	DiffRemoved DiffOp = object.Removed // the field does not exist any more
)

// Difference describes one field that differs between Old and Object. Old is nil for DiffAdded, and New is nil for
// DiffRemoved. Both are decoded JSON; do not modify them.
type Difference struct {
	Op   DiffOp
	Path []string
	Old  any
	New  any
}

// Change is what a handler gets: the object, the reason for the call, and the means to act. It is valid until the
// handler returns. To call a handler as a plain function in a test, see einmaltest.NewChange.
type Change[T any] struct {
	// Object is the handler's own copy. It includes what earlier handlers changed in the same reconciliation. What the
	// handler changes on it is written afterwards, also if the handler fails. Only changed fields are written, and only
	// changed items of lists. If another client has changed the same item of a list without keys, the handler runs again. The first
	// change outside of the status is logged as a warning, because GitOps tools can change it back. Of the
	// metadata, change labels and annotations only: a change of finalizers, owner references or other metadata fails
	// the attempt, as a programming error that this process does not retry.
	Object *T
	// Reason says why the handler runs.
	Reason Reason
	// Diff lists the fields that have changed since the handler last succeeded, sorted by path. It covers only what the
	// handler compares. Values that the schema has defaulted since then are not listed. It is empty if there is no Old.
	Diff []Difference
	// Attempt is the number of this attempt, from 1. It counts across restarts, except for Reconcile, Timer and Daemon.
	Attempt int
	// MaybeRepeated reports whether the handler may already have run for this reason. It is true for:
	//
	//   - a retry, and a call after the handler waited with RequeueAfter;
	//   - a creation or deletion that failed permanently before;
	//   - an object that existed when the operator started;
	//   - an object that a replica first sees within a minute after it was elected, because the previous replica may
	//     have handled it;
	//   - a creation that a user requested again with the annotation <identity>/recreate.
	//
	// False is reliable only as long as a single replica of the operator acts.
	MaybeRepeated bool
	// TriggeredBy lists the related objects whose changes triggered a Reconcile, at most ten: see Owns and Watches. It
	// is empty if the object itself is the reason.
	TriggeredBy []Related
	// Started is the time of the first attempt.
	Started time.Time
	// Client reads and writes other objects. Get reads handled kinds, and those of Owns, Watches and Index, from the
	// cache, if it is called with the Go type that they were declared with. All other requests go to the API server.
	// Updates and merge patches of handled objects preserve their records. Get returns an error for an object that does not
	// fit its Go type, and List leaves such objects out.
	//
	// It also implements client.WithWatch. Such watches go to the API server, and end with the handler's context.
	Client client.Client
	// Log has the object, its generation, the handler, the reason and the attempt as attributes. Recognised secrets are
	// redacted in messages, errors and attribute values. So are the values of attributes with names such as password or
	// token. Of a Secret only its name is logged. To log the name alone, call the attribute secretName, because secret
	// is such a name too.
	Log *slog.Logger

	old   func() (*T, bool)
	memo  func() *sync.Map
	apply applier
	say   func(about *corev1.ObjectReference, kind, reason, text string)
	// driven is true if an operator calls the handler. Otherwise a test does, with a Change from einmaltest.NewChange.
	driven bool
	// steps is nil if the handler has no record. left returns the handler's current version of Object.
	steps *attempt.Steps
	left  func() (object.Body, error)
	// was is the body behind Old; is is Object as it was when the handler was called.
	was, is object.Body
	// sync and stopping are nil except for daemons.
	sync     func(ctx context.Context) error
	stopping <-chan struct{}
}

// Old returns the object as it was when the handler last succeeded: its namespace, name and uid, and everything that
// handlers can compare. It has no status and no other metadata. Schema defaults are those of today.
//
// Old returns false if no such state is kept: at creation, for core Secrets, for very large objects, and for Reconcile,
// Timer and Daemon. Do not conclude anything from that; test Reason instead.
func (c *Change[T]) Old() (*T, bool) {
	if c.old == nil {
		return nil, false
	}
	return c.old()
}

func differences(found []object.Difference) []Difference {
	public := make([]Difference, len(found))
	for i, difference := range found {
		public[i] = Difference{Op: DiffOp(difference.Op), Path: difference.Path, Old: difference.Old, New: difference.New}
	}
	return public
}

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

// Memo returns the value of type V that the handlers of one object share in this process. It starts as the zero value.
// Use a type of your own for each thing to remember:
//
//	type calls struct{ n int }
//
//	einmal.Memo[calls](c).n++
//
// The value is not stored anywhere: it is lost when the process ends or the object is deleted. An object that is
// created again under the same name starts with a zero value.
//
// Handlers of one object never run concurrently, so V needs no lock, unless you share it with goroutines of your own or
// with a daemon.
func Memo[V, T any](c *Change[T]) *V {
	if c.memo == nil { // A test calls the handler.
		own := &sync.Map{}
		c.memo = func() *sync.Map { return own }
	}
	memo, of := c.memo(), reflect.TypeFor[V]()
	found, has := memo.Load(of)
	if !has {
		found, _ = memo.LoadOrStore(of, new(V))
	}
	known, _ := found.(*V)
	return known
}
