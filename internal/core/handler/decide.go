package handler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// State is all that a decision depends on.
type State struct {
	UID, APIVersion string
	Essence         object.Body
	// Record is nil when there is no usable one.
	Record *record.Record
	// Deleting: the object has a deletionTimestamp. Marked: it has our finalizer.
	Deleting, Marked bool
	// Resumed holds the resume handlers that are finished in this process.
	Resumed map[string]bool
	// Settled: the object is older than the watermark, so it has had a record.
	Settled bool
	// Inherited: the object was there when this process began and has not been settled by it since.
	Inherited bool
	// Recreate is the token by which a person asks for the create handlers once more; "" for none.
	Recreate string
	// Levels holds, by level-triggered handler, how it stands in this process: nothing of it is in the record.
	Levels map[string]record.Entry
	// Waits holds, by handler, times to wait for that are newer than what the record says.
	Waits map[string]time.Time
	Now   time.Time
}

// Finalizer is what to do with our finalizer.
type Finalizer int

// Keep leaves it as it is. Add sets it, before any handler runs. Remove takes it away, once nobody has to run.
const (
	Keep Finalizer = iota
	Add
	Remove
)

// Run is one attempt to make now.
type Run struct {
	Declaration
	// Reason is what the handler is told: Create, Update, Delete, Resume or Reconcile.
	Reason cause.Cause
	// Old is the essence that the handler was last done with; HasOld is false where there is none.
	Old    object.Body
	HasOld bool
	// Attempt counts from 1.
	Attempt int
	// Waited: the attempt before this one asked to be called again, without having failed.
	Waited bool
	// MaybeRepeated: an earlier run of this handler for this cause cannot be ruled out.
	MaybeRepeated bool
	Started       time.Time
}

// Plan is what to do with the object now.
type Plan struct {
	Cause     cause.Cause
	Finalizer Finalizer
	Runs      []Run
	// Wake is when to look again if nothing happens; zero for never.
	Wake time.Time
	// Record is what outcomes are folded into. Tidied tells that it already differs from the state's.
	Record record.Record
	Tidied bool
	// Unreadable tells that what handlers have seen was digested with another key: see readable.
	Unreadable bool
}

// Decide names the cause and plans what to do about it.
func (k Kind) Decide(s State) Plan {
	d := decision{kind: k, state: s, plan: k.open(s)}
	d.plan.Cause = cause.Of(d.facts())
	if k.HoldsDeletion() && !s.Marked && !s.Deleting {
		d.plan.Finalizer = Add
		return d.plan
	}
	switch d.plan.Cause {
	case cause.Delete:
		d.planDeletion()
		d.release()
	case cause.Create:
		d.planVerb(cause.Create)
		d.planLevels()
		d.dropUnneeded()
	case cause.Update, cause.Resume, cause.Reconcile, cause.Noop, cause.Lost:
		d.planInOrder()
		d.planLevels()
		d.dropUnneeded()
	case cause.Free:
		d.release()
	case cause.Gone:
	}
	return d.plan
}

// open begins a plan with the record to work on: the state's, or a new one.
func (k Kind) open(s State) Plan {
	switch {
	case s.Record == nil && !k.Recorded():
		return Plan{Record: record.New(s.UID, s.APIVersion)}
	case s.Record == nil:
		return Plan{Record: k.begin(s), Tidied: true}
	case !k.Recorded():
		return Plan{Record: *s.Record}
	}
	opened, unreadable := k.readable(*s.Record, s.Essence)
	opened, added := k.acquainted(opened, s)
	if k.asked(s) {
		return Plan{Record: k.recreate(opened, s.Recreate), Tidied: true, Unreadable: unreadable}
	}
	return Plan{Record: opened, Tidied: unreadable || added, Unreadable: unreadable}
}

// begin makes the record of an object that is handled for the first time, or whose record was lost.
func (k Kind) begin(s State) record.Record {
	begun := record.New(s.UID, s.APIVersion)
	begun.Recreated = s.Recreate // Who finds no record finds a token that may have been used: only a new one counts.
	if s.Deleting {
		return begun
	}
	if s.Settled || !k.has(cause.Create) {
		begun, begun.Base = k.keep(begun, s.Essence)
		return begun
	}
	return k.recreate(begun, s.Recreate)
}

// asked tells whether a person asks for the create handlers once more.
func (k Kind) asked(s State) bool {
	return s.Record != nil && !s.Deleting && s.Recreate != "" && s.Recreate != s.Record.Recreated
}

// recreate makes all create handlers due.
func (k Kind) recreate(r record.Record, token string) record.Record {
	r.Recreated = token
	for _, declared := range k.Handlers {
		if declared.Verb == cause.Create {
			r = r.With(declared.ID, record.Entry{Cause: string(cause.Create), Outcome: record.Pending})
		}
	}
	return r
}

type decision struct {
	kind  Kind
	state State
	plan  Plan
}

func (d *decision) facts() cause.Facts {
	facts := cause.Facts{
		Exists: true, Deleting: d.state.Deleting, Marked: d.state.Marked,
		Recorded: d.state.Record != nil || !d.kind.Recorded() && !d.state.Deleting, Settled: d.state.Settled, DeletionDone: d.plan.Record.Deleted,
	}
	for _, declared := range d.kind.Handlers {
		entry, has := d.plan.Record.Handlers[declared.ID]
		switch declared.Verb {
		case cause.Create:
			facts.CreationOpen = facts.CreationOpen || has && (entry.Outcome.Open() || d.reopened(declared, entry))
		case cause.Update:
			facts.Changed = facts.Changed || d.changed(declared)
		case cause.Resume:
			facts.FirstSight = facts.FirstSight || !d.state.Resumed[declared.ID]
		case cause.Reconcile:
			facts.Unlooked = facts.Unlooked || d.unlooked(declared)
		case cause.Delete, cause.Gone, cause.Free, cause.Noop, cause.Lost:
		}
	}
	return facts
}

// reopened: a create or delete handler that failed for good runs again when its view changes.
func (d *decision) reopened(declared Declaration, entry record.Entry) bool {
	return entry.Outcome == record.Failed && d.edited(declared, entry)
}

// edited tells whether the handler's view is another one than at its last attempt.
func (d *decision) edited(declared Declaration, entry record.Entry) bool {
	return !d.kind.sameDigest(d.state.UID, declared, entry.Tried, d.state.Essence)
}

// changed tells whether an update handler has something to see that it is not done with.
func (d *decision) changed(declared Declaration) bool {
	_, old, has := seenBy(d.plan.Record, declared.ID)
	return !has || !d.kind.hasSeen(d.plan.Record, declared, old, d.state.Essence)
}

// planVerb plans all handlers of one verb that are not finished.
func (d *decision) planVerb(verb cause.Cause) {
	for _, declared := range d.kind.Handlers {
		if declared.Verb != verb {
			continue
		}
		entry, has := d.plan.Record.Handlers[declared.ID]
		if has {
			d.consider(declared, entry)
		}
	}
}

// planDeletion plans delete handlers that are not finished, and resume handlers that want to see deleted objects too.
func (d *decision) planDeletion() {
	for _, declared := range d.kind.Handlers {
		resumes := declared.Verb == cause.Resume && declared.AlsoDeleting && !d.state.Resumed[declared.ID]
		if declared.Verb == cause.Delete || resumes {
			d.consider(declared, d.plan.Record.Handlers[declared.ID])
		}
	}
}

// planInOrder plans update handlers with something to see and resume handlers that this process has not run yet.
func (d *decision) planInOrder() {
	for _, declared := range d.kind.Handlers {
		entry, has := d.plan.Record.Handlers[declared.ID]
		switch {
		case declared.Verb == cause.Update && d.changed(declared):
			d.consider(declared, entry)
		case declared.Verb == cause.Update && has && entry.Outcome.Open():
			// What it was tried for has been taken back.
			d.plan.Record, d.plan.Tidied = d.plan.Record.Without(declared.ID), true
		case declared.Verb == cause.Resume && !d.state.Resumed[declared.ID]:
			d.consider(declared, entry)
		}
	}
}

// consider plans an attempt now, or the time of the next one.
func (d *decision) consider(declared Declaration, entry record.Entry) {
	switch entry.Outcome {
	case record.Done:
		if declared.Verb != cause.Update {
			return
		}
		entry = record.Entry{}
	case record.Failed:
		if !d.edited(declared, entry) {
			return
		}
		entry = record.Entry{Outcome: record.Failed} // Attempts count anew.
	case record.Retry, record.Waiting:
		next := entry.Next
		if newer, has := d.state.Waits[declared.ID]; has {
			next = newer
		}
		if d.state.Now.Before(next) && (entry.Asked || !d.edited(declared, entry)) {
			d.wake(next)
			return
		}
	case record.Pending:
	}
	d.attempt(declared, entry)
}

// attempt plans an attempt now.
func (d *decision) attempt(declared Declaration, entry record.Entry) {
	run := Run{
		Declaration: declared, Reason: declared.Verb, Waited: entry.Outcome == record.Waiting,
		Attempt: entry.Attempts + 1, Started: entry.Started,
		MaybeRepeated: d.mayRepeat(declared, entry),
	}
	if run.Started.IsZero() {
		run.Started = d.state.Now.UTC().Truncate(time.Second)
	}
	if _, old, kept := seenBy(d.plan.Record, declared.ID); kept && old.Body != nil && comparing(declared.Verb) {
		run.Old, run.HasOld = old.Body, true
	}
	d.plan.Runs = append(d.plan.Runs, run)
}

// mayRepeat tells whether the handler may have run for this cause before. An update that failed for good was another change.
func (d *decision) mayRepeat(declared Declaration, entry record.Entry) bool {
	waited := entry.Outcome == record.Waiting // It counts no attempt.
	failed := entry.Outcome == record.Failed && declared.Verb != cause.Update
	recreated := d.plan.Record.Recreated != "" && declared.Verb == cause.Create
	return entry.Attempts > 0 || waited || failed || recreated || d.state.Inherited
}

// comparing tells whether handlers of a verb are shown what they were last done with.
func comparing(verb cause.Cause) bool { return verb != cause.Create && verb != cause.Reconcile }

func (d *decision) wake(at time.Time) {
	if d.plan.Wake.IsZero() || at.Before(d.plan.Wake) {
		d.plan.Wake = at
	}
}

// release lets a deleted object go when no delete handler has to run any more.
func (d *decision) release() {
	done := d.plan.Record.Deleted || d.kind.deletionDone(d.plan.Record)
	if d.state.Marked && (done || !d.kind.HoldsDeletion()) {
		d.plan.Finalizer = Remove
	}
}

// dropUnneeded takes away a finalizer that an earlier release with delete handlers has left.
func (d *decision) dropUnneeded() {
	if d.state.Marked && !d.kind.HoldsDeletion() {
		d.plan.Finalizer = Remove
	}
}
