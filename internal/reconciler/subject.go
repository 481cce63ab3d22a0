package reconciler

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/core/seen"
	"github.com/einmal-operators/einmal/internal/kindstore"
	"github.com/einmal-operators/einmal/internal/report"
	"github.com/einmal-operators/einmal/internal/schemaview"
)

// subject is the object that is reconciled, with what one reconciliation knows of it.
type subject struct {
	r      *Reconciler
	view   *schemaview.View
	key    types.NamespacedName
	report report.Object
	memory *memory
	// seen is the object as it was read last, or as our last write has left it. shown is the version that the cache shows.
	seen  seen.Object
	shown string
	// plan is what to do, made for the version planned.
	plan    handler.Plan
	planned string
	// counted: this reconciliation is counted as one write in a conflict. chained: its handlers run because of our own last write.
	counted, chained bool
}

// decide plans what to do. The error says that a filter could not be asked.
func (s *subject) decide() error {
	s.plan, s.planned = s.view.Pure.Decide(s.state()), s.seen.Version()
	if s.plan.Clocks != nil {
		s.memory.clocks = s.plan.Clocks
	}
	return s.plan.Err
}

// state is what the core decides from.
func (s *subject) state() handler.State {
	return handler.State{
		Namespace: s.key.Namespace, Name: s.key.Name, UID: s.memory.uid,
		APIVersion: s.r.Kind.GVK.GroupVersion().String(),
		Essence:    s.r.essence(s.seen.Body()),
		Record:     s.seen.Record().Value(),
		Deleting:   s.seen.Deleting(),
		Marked:     s.marked(),
		Resumed:    s.memory.resumed,
		Levels:     s.memory.levels,
		Clocks:     s.memory.clocks,
		Broken:     s.memory.broken,
		Woken:      s.r.State.Objects.Triggered(s.key),
		Held:       s.r.daemons.Hold(s.key, s.memory.uid),
		Waits:      s.memory.waits,
		Settled:    s.settled(), // mutant: lost-by-finalizer
		Inherited:  s.memory.inherited,
		Older:      s.memory.older,
		Recreate:   object.Text(s.seen.Body(), "metadata", "annotations", object.RecreateAnnotation(s.r.Settings.Identity)),
		Release:    object.Text(s.seen.Body(), "metadata", "annotations", object.ReleaseAnnotation(s.r.Settings.Identity)),
		Words:      object.EffectWords(s.seen.Body(), s.r.Settings.Identity),
		Now:        time.Now(),
	}
}

func (s *subject) marked() bool { return s.seen.HasFinalizer(s.r.Settings.Finalizer()) }

// about is what a journal of the object has to know, of which the first handler gets this form.
func (s *subject) about(given object.Body) journal.Object {
	return journal.Object{UID: s.memory.uid, Given: given, Essence: s.r.essence}
}

// newest is the object as the reconciliation leaves it.
func (s *subject) newest() object.Body {
	if body, err := s.r.Kind.Canonical(s.seen.Raw()); s.seen.IsLive() && err == nil {
		return body
	}
	return s.seen.Body()
}

// remember keeps what the record does not say: how long a wait goes on, which handlers have a programming error, which resume handlers this
// process is done with, and how level-triggered ones and timers stand.
func (s *subject) remember(run handler.Run, result handler.Result, left object.Body) {
	delete(s.memory.waits, run.ID)
	if delete(s.memory.broken, run.ID); result.Broken {
		s.memory.broken[run.ID] = true // mutant: programming-error-retried
	}
	switch run.Reason { //nolint:exhaustive // The others have a record.
	case cause.Reconcile:
		s.memory.levels[run.ID] = s.view.Pure.FoldLevel(s.memory.uid, run, result, left, time.Now())
		return
	case cause.Timer:
		s.memory.clocks[run.ID] = s.view.Pure.FoldTimer(s.memory.uid, s.memory.clocks[run.ID], handler.Ended{
			Run: run, Result: result, Seen: left, At: time.Now(),
		})
		return
	}
	if result.Outcome == record.Waiting {
		s.memory.waits[run.ID] = time.Now().Add(result.Delay)
	}
	if run.Reason == cause.Resume && !result.Outcome.Open() {
		s.memory.resumed[run.ID] = true
	}
}

// followsOwnWrite reports whether handlers are about to run because of our own last write: no other client has changed the object since, and
// they neither retry nor answer a related object.
func (s *subject) followsOwnWrite() bool {
	if s.memory.ours == "" || s.memory.ours != s.seen.Version() {
		return false
	}
	woken := s.r.State.Objects.Triggered(s.key)
	return slices.ContainsFunc(s.plan.Runs, func(run handler.Run) bool {
		return run.Attempt == 1 && !run.Waited && (run.Reason == cause.Update || run.Reason == cause.Reconcile && !woken[run.ID])
	})
}

// conflictPause returns until when conflicting writes hold the object back, or the zero time. A deletion does not wait.
func (s *subject) conflictPause() time.Time {
	if s.seen.Deleting() {
		return time.Time{}
	}
	return s.memory.conflicts.heldUntil(time.Now())
}

// reportTouches reports what a handler has set outside of the status, and where it undoes in the status what another handler did.
func (s *subject) reportTouches(run handler.Run, edits []patch.Edit, overwritten []journal.Overwritten) {
	s.report.OwnEdit(run.ID, outsideStatus(patch.Touches(edits)))
	s.report.StatusConflict(run.ID, overwritten)
}

// outsideStatus returns the fields outside of the status.
func outsideStatus(found []patch.Touch) []string {
	var fields []string
	for _, touch := range found {
		if !touch.Path.Under(journal.Status) {
			fields = append(fields, touch.Path.String())
		}
	}
	return fields
}

// inheritedUnseen reports whether another process may have handled an object that this process does not remember. A process remembers no
// object that no handler matches, so the object may have existed when this process started.
func (s *subject) inheritedUnseen(body object.Body) bool {
	if s.view.Pure.EveryObject() {
		return false
	}
	at, err := time.Parse(time.RFC3339, object.Text(body, "metadata", "creationTimestamp"))
	return err == nil && s.r.FirstList.Predates(at)
}

// books returns the object as the store of its kind knows it.
func (s *subject) books() kindstore.Object {
	created, _ := time.Parse(time.RFC3339, object.Text(s.seen.Body(), "metadata", "creationTimestamp")) // No object from an API server is without one.
	return kindstore.Object{Namespace: s.key.Namespace, UID: s.memory.uid, Name: s.key.String(), Created: created}
}

// noteRecorded notes that the object has a record.
func (s *subject) noteRecorded() { s.r.Store.Recorded(s.books()) }

// noteMissing notes that the object has no record. An object that is being deleted is never Lost and may never get a record, so it does not hold the
// watermark back.
func (s *subject) noteMissing() {
	if s.seen.Deleting() { // mutant: terminating-holds
		s.r.Store.Gone(s.key.Namespace, s.memory.uid)
		return
	}
	s.r.Store.Missing(s.books())
}

// settled reports whether the object must have had a record: it is covered by the watermark, and existed before this process
// saw it. An object that this process saw arrive had none, however late it arrived.
func (s *subject) settled() bool {
	if !s.memory.older { // mutant: late-arrival-is-lost
		return false
	}
	return s.r.Store.Covers(s.books()) // mutant: lost-is-created
}
