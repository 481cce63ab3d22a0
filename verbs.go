package einmal

import (
	"errors"
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/engine"
)

// Reconcile declares a level-triggered handler: it compares the desired state with the actual one and corrects the
// difference, whatever has changed. It runs when this process first sees the object. It runs again when what it
// compares (the essence of the object, or its Fields) differs from what it last succeeded with, and when a related
// object triggers it: see Owns and Watches.
//
// It runs after the create, update and resume handlers, whether or not these have succeeded. It runs in every new
// process, also for objects whose record was lost. It does not run for objects that are being deleted: see OnDelete.
//
// Failures are retried as for other handlers. Nothing is recorded, so it costs no write, and attempts are counted from
// 1 in each process. Objects of a kind that has only Reconcile, Timer, Daemon and OnEvent handlers have no record. Old
// and Diff are empty.
func (k *Kind[T]) Reconcile(id string, fn HandlerFunc[T], options ...ReconcileOption) {
	declareWith(k, cause.Reconcile, id, fn, options)
}

// OnEvent declares a handler that is called for each event of the watch, for example to count, log or forward events.
// The Reason is WatchListed, WatchAdded, WatchModified or WatchDeleted, and Object is the object of the event. Nothing
// is recorded, and it adds no finalizer. A failed call is logged and not retried.
//
// The events of one object come in order, before its other handlers see them, and never while those run. Several
// changes in a row can be combined into one event with the newest state. As long as the process runs, every addition
// and deletion is reported. A deletion that the watch missed is reported late, with the last known state. Events from
// before the process started are not reported; objects that exist then are reported as WatchListed. The operator's own
// writes cause events too.
//
// Object is read-only, because the event may be old: a handler that changes its copy fails. Use Client to write other
// objects.
func (k *Kind[T]) OnEvent(id string, fn HandlerFunc[T], options ...EventOption) {
	declareWith(k, engine.Event, id, fn, options)
}

// WithoutFinalizer makes OnDelete or Daemon add no finalizer. The delete handler then runs only if another finalizer
// keeps the object long enough. It does not run for an object that disappears at once. A deletion does not wait for the
// daemon.
func WithoutFinalizer() FinalizerOption {
	return option{name: "WithoutFinalizer", handler: func(settings *handlerSettings) error {
		settings.noFinalizer = true
		return nil
	}}
}

// AlsoAtDeletion makes OnResume also run for objects that are being deleted, together with their delete handlers. The
// deletion does not wait for it.
func AlsoAtDeletion() ResumeOption {
	return option{name: "AlsoAtDeletion", handler: func(settings *handlerSettings) error {
		settings.alsoDeleting = true
		return nil
	}}
}

// misplacedAt returns the misplaced options that the compiler cannot refuse, because HandlerOption covers several
// verbs.
func (s *handlerSettings) misplacedAt(verb cause.Cause) []error {
	var found []error
	if s.attemptTimeout > 0 && verb == cause.Daemon {
		found = append(found, errors.New("option AttemptTimeout: not allowed for a daemon, which runs as long as its object exists: leave it out, or use Timer"))
	}
	return found
}

// add adds a handler to the kind.
func (d *declaredKind) add(declared engine.Handler) {
	if declared.Verb == engine.Event {
		d.kind.Observers = append(d.kind.Observers, declared)
		return
	}
	d.kind.Handlers = append(d.kind.Handlers, declared)
}

// handlers returns all handlers of the kind, with those of OnEvent.
func (d *declaredKind) handlers() []engine.Handler {
	return slices.Concat(d.kind.Handlers, d.kind.Observers)
}
