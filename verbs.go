package einmal

import (
	"errors"
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/engine"
)

// Reconcile declares a level-triggered handler: it looks at a state and brings the world to it, whatever has changed and
// how often. It runs when this process first sees the object, and again whenever what it looks at (the essence, or the
// fields given with Field) differs from what it last succeeded with. It runs in each process anew, also for objects whose
// record was lost, and in a pass after the handlers of creation, update and resume, whether or not they have succeeded.
// Objects that are being deleted are left to OnDelete.
//
// A failure is retried as for other handlers. Nothing of it is recorded: it costs no write, and attempts are counted from
// 1 in each process. A kind with Reconcile and OnEvent alone gets no record at all. There is neither Old nor Diff.
func (k *Kind[T]) Reconcile(id string, fn HandlerFunc[T], options ...Option) {
	k.declare(cause.Reconcile, id, fn, options)
}

// OnEvent declares a handler that is called for each event of the watch: Reason is EventListed, EventAdded, EventModified or
// EventDeleted, and Object is what the event shows. It is for those who count, log or forward what happens. Nothing of
// it is recorded, there is no finalizer for it, and what fails is logged and not called again.
//
// The events of one object come in their order, before its other handlers look at it, and not while they run. What an
// object was changed to meanwhile comes as one event, with the newest state; no addition and no deletion is left out, as
// long as the process runs. What happened while no process ran is not told, but for what is there: EventListed. A deletion
// that the watch has missed is told late, with the last state that was seen. The operator's own writes are events too.
//
// The object is only read: it may have moved on since the event, so a handler that changes its copy fails. Write other objects
// with Client.
func (k *Kind[T]) OnEvent(id string, fn HandlerFunc[T], options ...Option) {
	k.declare(engine.Event, id, fn, options)
}

// Optional is an option of OnDelete: no finalizer keeps the object for this handler. It runs when the object is seen to be
// deleted, because somebody else keeps it, and does not run when the object just vanishes.
func Optional() Option {
	return Option{name: "Optional", handler: func(settings *handlerSettings) error {
		settings.optional = true
		return nil
	}}
}

// AlsoAtDeletion is an option of OnResume: the handler runs for objects that are being deleted too, together with their
// delete handlers. The deletion does not wait for it.
func AlsoAtDeletion() Option {
	return Option{name: "AlsoAtDeletion", handler: func(settings *handlerSettings) error {
		settings.alsoDeleting = true
		return nil
	}}
}

// misplacedAt finds options that mean nothing for a verb.
func (s handlerSettings) misplacedAt(verb cause.Cause) []error {
	var found []error
	complain := func(misplaced bool, text string) {
		if misplaced {
			found = append(found, errors.New(text))
		}
	}
	complain(s.optional && verb != cause.Delete && verb != cause.Daemon, "option Optional: only delete handlers and daemons keep objects; leave it out")
	complain(s.alsoDeleting && verb != cause.Resume, "option AlsoAtDeletion: only resume handlers can ask for it; leave it out, or use OnDelete")
	complain(s.timing.set && verb != cause.Timer, "options Interval, Sharp, Idle, InitialDelay and Jitter say when a timer runs; leave them out, or use Timer")
	complain(s.timing.interval == 0 && verb == cause.Timer, "a timer needs the option Interval: say how often it runs")
	unrecorded := verb == engine.Event || verb == cause.Reconcile || verb == cause.Timer || verb == cause.Daemon
	complain(s.countCrashes && unrecorded, "option CountCrashes: nothing of this handler is recorded, so there is nothing to count; leave it out")
	complain(s.saveFirst && verb == engine.Event, "option SaveFirst: event handlers are called before anything is done; leave it out")
	complain(s.saveFirst && verb == cause.Daemon, "option SaveFirst: a daemon starts when what was done is saved; leave it out")
	complain((s.stopGrace > 0 || s.abandon > 0) && verb != cause.Daemon, "options StopGrace and AbandonAfter say how a daemon is stopped; leave them out, or use Daemon")
	complain(len(s.fields) > len(s.changes) && verb == cause.Daemon, "option Field without a match: a daemon runs whatever changes; give it a match, so that it is for some objects, or leave it out")
	complain(s.concurrency > 0 && unrecorded, "option Concurrency: nothing of this handler is recorded, so it has no steps and no Each; leave it out")
	for _, related := range s.related {
		complain(verb != cause.Reconcile, "option "+related.option+": other objects wake Reconcile alone, which looks at a state; leave it out, or use Reconcile")
	}
	return append(found, s.retries.misplacedAt(verb)...)
}

// add puts a handler where the engine looks for it.
func (d *declaredKind) add(declared engine.Handler) {
	if declared.Verb == engine.Event {
		d.kind.Observers = append(d.kind.Observers, declared)
		return
	}
	d.kind.Handlers = append(d.kind.Handlers, declared)
}

// handlers are all handlers of the kind.
func (d *declaredKind) handlers() []engine.Handler {
	return slices.Concat(d.kind.Handlers, d.kind.Observers)
}
