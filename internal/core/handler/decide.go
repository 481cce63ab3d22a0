package handler

import (
	"errors"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// State holds everything that a decision depends on.
type State struct {
	Namespace, Name string
	UID, APIVersion string
	Essence         object.Body
	// Record is the usable record, or nil.
	Record *record.Record
	// Deleting means that the object has a deletionTimestamp. Marked means that it has the operator's finalizer.
	Deleting, Marked bool
	// Resumed holds the resume handlers that have finished in this process.
	Resumed map[string]bool
	// Settled means that the object is older than the watermark, so that it has had a record.
	Settled bool
	// Inherited means that the object may have existed before this process started, and that the process has not settled it since.
	// Older means that it did exist.
	Inherited, Older bool
	// Recreate is the token with which a user requests another run of the create handlers, or "".
	Recreate string
	// Levels holds the state of each level-triggered handler in this process. None of it is stored in the record.
	Levels map[string]record.Entry
	// Woken holds the level-triggered handlers that related objects have triggered since the start of their last attempt.
	Woken map[string]bool
	// Release names the delete handler that a user gives up, or is object.ReleaseAll or "".
	Release string
	// Words holds users' answers about effects with unknown results, by token.
	Words map[string]string
	// Waits holds, by handler, times of the next attempt that are newer than those in the record.
	Waits map[string]time.Time
	// Clocks holds, by timer, its state in this process.
	Clocks map[string]Clock
	// Broken holds the handlers whose last attempt in this process failed because of a programming error.
	Broken map[string]bool
	// Held means that a daemon of the object has not ended yet.
	Held bool
	Now  time.Time
}

// Finalizer is what to do with the operator's finalizer.
type Finalizer int

// Keep leaves the finalizer as it is. Add sets it before any handler runs. Remove removes it when no handler has to run any more.
const (
	Keep Finalizer = iota
	Add
	Remove
)

// Run is one attempt to make now.
type Run struct {
	Declaration
	// Reason is the cause as the handler sees it: Create, Update, Delete, Resume, Reconcile or Timer.
	Reason cause.Cause
	// Old is the essence that the handler last finished with. HasOld is false if there is none.
	Old    object.Body
	HasOld bool
	// Compared is the digest of that essence, "" if there is none.
	Compared string
	// Attempt counts from 1.
	Attempt int
	// Waited means that the previous attempt asked to be called again without having failed.
	Waited bool
	// MaybeRepeated means that the handler may already have run for this cause.
	MaybeRepeated bool
	Started       time.Time
	// Steps are the parts of the handler that earlier attempts have finished, and the effects that they have started. Since is the
	// digest of the essence that the oldest of them was done with, if the handler sees another one now. Redo means that the steps were
	// done but must be done again.
	Steps map[string]record.Step
	Since string
	Redo  bool
	// Words holds users' answers about effects with unknown results, by token.
	Words map[string]string
}

// Plan is what to do with the object now.
type Plan struct {
	Cause     cause.Cause
	Finalizer Finalizer
	Runs      []Run
	// Wake is when to decide again if nothing else happens, or zero for never.
	Wake time.Time
	// Record is the record that results are folded into. Tidied means that it already differs from the one in the state.
	Record record.Record
	Tidied bool
	// Unrecorded means that no handler that needs a record matches the object, and that there is none.
	Unrecorded bool
	// Outside holds the handlers that the object does not match.
	Outside map[string]bool
	// Err means that a filter failed. Then nothing is planned, but Record is set.
	Err error
	// GivenUp holds the handlers that are given up without another attempt. Their results are folded in first.
	GivenUp []GivenUp
	// Unreadable means that the digests of what handlers have seen were made with another key; see readable.
	Unreadable bool
	// Clocks holds the current state of the timers that run.
	Clocks map[string]Clock
	// Daemons are the daemons that should run for the object.
	Daemons []Declaration
}

// Decide determines the cause and plans what to do.
func (k Kind) Decide(s State) Plan {
	if s.Record != nil {
		s.Record = k.claimed(s.Record)
	}
	in, failed := k.scopeOf(s)
	if failed != nil {
		return Plan{Cause: cause.Noop, Record: k.open(s, scope{}).Record, Err: failed}
	}
	d := decision{kind: k, state: s, scope: in, plan: k.open(s, in)}
	d.plan.Cause, d.plan.Outside = cause.Of(d.facts()), in.outside
	d.updateClocks()
	d.planDaemons()
	if k.holdsDeletion(in) && !s.Marked && !s.Deleting {
		d.plan.Finalizer = Add
		return d.plan
	}
	switch d.plan.Cause {
	case cause.Delete:
		d.planDeletion()
		d.release()
	case cause.Create:
		d.planCreation()
		d.planLevels()
		d.planTimers()
		d.dropUnneeded()
	case cause.Unmatched:
		d.dropUnneeded()
	case cause.Update, cause.Resume, cause.Reconcile, cause.Noop, cause.Lost:
		d.planInOrder()
		d.planLevels()
		d.planTimers()
		d.dropUnneeded()
	case cause.Free:
		d.release()
	case cause.Gone, cause.Timer, cause.Daemon:
	}
	return d.plan
}

// open starts a plan with the record to work on: the one in the state, or a new one.
func (k Kind) open(s State, in scope) Plan {
	switch {
	case s.Record == nil && !k.recorded(in):
		return Plan{Record: record.New(s.UID, s.APIVersion), Unrecorded: true}
	case s.Record == nil:
		begun, _ := k.syncScope(k.begin(s, in), s, in)
		return Plan{Record: begun, Tidied: true}
	}
	opened, unreadable := k.readable(*s.Record, s.Essence)
	opened, digests := k.backfillDigests(opened, s)
	opened, status := k.backfillStatus(opened, s)
	asked := k.asked(s)
	if asked {
		opened = k.recreate(opened, s.Recreate, in)
	}
	opened, moved := k.syncScope(opened, s, in)
	abandoned := k.abandoned(opened, s)
	if moved || abandoned { // Possibly no handler of an open creation is left.
		opened = k.settleCreation(opened, s.Essence)
	}
	return Plan{Record: opened, Tidied: unreadable || digests || status || asked || moved || abandoned, Unreadable: unreadable}
}

// begin returns the record of an object that is handled for the first time or whose record was lost.
func (k Kind) begin(s State, in scope) record.Record {
	begun := record.New(s.UID, s.APIVersion)
	begun.Recreated = s.Recreate // Without a record the token may be stale, so only a later value triggers a re-create.
	if s.Deleting {
		return begun
	}
	if !s.Settled {
		begun = k.recreate(begun, s.Recreate, in)
		begun.Doubted = s.Older
	}
	if (s.Settled || !k.creates(in)) && !k.unmatched(s, in) {
		begun, begun.Base = k.keep(begun, s.Essence)
	}
	return begun
}

// asked reports whether a user requests another run of the create handlers.
func (k Kind) asked(s State) bool {
	return s.Record != nil && !s.Deleting && s.Recreate != "" && s.Recreate != s.Record.Recreated
}

// recreate makes all create handlers due. Afterwards syncScope takes out those that the object does not match.
func (k Kind) recreate(r record.Record, token string, in scope) record.Record {
	r.Recreated = token
	for _, declared := range k.Handlers {
		if declared.Verb == cause.Create || declared.AtCreation && (in.outside[declared.ID] || !in.noInitialView[declared.ID]) {
			r = r.With(declared.ID, record.Entry{Cause: string(cause.Create), Outcome: record.Pending})
		}
	}
	return r
}

type decision struct {
	kind  Kind
	state State
	scope scope
	plan  Plan
}

func (d *decision) facts() cause.Facts {
	facts := cause.Facts{
		Exists: true, Unmatched: d.kind.unmatched(d.state, d.scope), Deleting: d.state.Deleting, Marked: d.state.Marked,
		Recorded: d.state.Record != nil || d.plan.Unrecorded && !d.state.Deleting, Settled: d.state.Settled, DeletionDone: d.plan.Record.Deleted,
	}
	for _, declared := range d.kind.Handlers {
		entry := d.plan.Record.Handlers[declared.ID]
		switch {
		case creating(declared, entry):
			due := entry.Outcome.Open() || d.reopened(declared, entry)
			facts.CreationOpen = facts.CreationOpen || due && !entry.Late
			facts.Changed = facts.Changed || due && entry.Late
		case declared.Verb == cause.Update:
			facts.Changed = facts.Changed || d.changed(declared) || d.answered(entry)
		case declared.Verb == cause.Resume:
			facts.FirstSight = facts.FirstSight || d.resumes(declared) || d.answered(entry)
		case declared.Verb == cause.Reconcile:
			facts.NeedsReconcile = facts.NeedsReconcile || d.needsReconcile(declared)
		}
	}
	return facts
}

// reopened reports whether a create or delete handler that failed permanently runs again: its view has changed, or a user has
// answered it.
func (d *decision) reopened(declared Declaration, entry record.Entry) bool {
	return entry.Outcome == record.Failed && d.hasNews(declared, entry)
}

// edited reports whether the handler's view differs from that of its last attempt. Related objects are part of the view.
func (d *decision) edited(declared Declaration, entry record.Entry) bool {
	return d.woken(declared) || !d.kind.sameDigest(d.state.UID, declared, entry.Tried, d.state.Essence)
}

// changed reports whether an update handler has not finished with what it sees now.
func (d *decision) changed(declared Declaration) bool {
	if d.scope.outside[declared.ID] {
		return false
	}
	_, old, has := seenBy(d.plan.Record, declared.ID)
	return !has || !d.kind.hasSeen(d.plan.Record, declared, old, d.state.Essence)
}

// resumes reports whether a resume handler has to run in this process.
func (d *decision) resumes(declared Declaration) bool {
	return !d.state.Resumed[declared.ID] && !d.scope.outside[declared.ID]
}

// planCreation plans all handlers that have not finished the creation.
func (d *decision) planCreation() {
	for _, declared := range d.kind.Handlers {
		if entry := d.plan.Record.Handlers[declared.ID]; creating(declared, entry) {
			d.consider(declared, entry)
		}
	}
}

// planInOrder plans update handlers whose view has changed, resume handlers that have not run in this process, and creations for
// handlers that the object began to match later.
func (d *decision) planInOrder() {
	for _, declared := range d.kind.Handlers {
		entry, has := d.plan.Record.Handlers[declared.ID]
		switch {
		case creating(declared, entry):
			if entry.Late {
				d.consider(declared, entry)
			}
		case d.answered(entry):
			d.consider(declared, entry)
		case declared.Verb == cause.Update && d.changed(declared):
			d.considerUpdate(declared, entry)
		case declared.Verb == cause.Update && has && entry.Outcome.Open():
			// The change that the handler was attempted for has been reverted.
			d.plan.Record, d.plan.Tidied = setAside(d.plan.Record, declared, entry), true
		case declared.Verb == cause.Resume && d.resumes(declared):
			d.consider(declared, entry)
		case declared.Verb == cause.Resume && has && !record.Unknown(entry.Steps):
			d.plan.Record, d.plan.Tidied = d.plan.Record.Without(declared.ID), true
		}
	}
}

// considerUpdate plans an update handler if its filters match the change. Otherwise it records that the handler has seen the change.
func (d *decision) considerUpdate(declared Declaration, entry record.Entry) {
	_, kept, _ := seenBy(d.plan.Record, declared.ID)
	wanted, err := d.kind.wants(declared, kept, d.state.Essence)
	switch {
	case err != nil:
		d.plan.Err = errors.Join(d.plan.Err, filterError(declared, err))
	case wanted:
		d.consider(declared, entry)
	default:
		d.plan.Record, d.plan.Tidied = d.kind.seenNow(d.plan.Record, declared, d.state.Essence), true
	}
}

// consider plans an attempt now, or sets the time of the next one.
func (d *decision) consider(declared Declaration, entry record.Entry) {
	switch entry.Outcome {
	case record.Done:
		if declared.Verb != cause.Update {
			return
		}
		entry = record.Entry{}
	case record.Outside:
		return
	case record.Failed:
		if d.givenUpByHand(declared, entry) || !d.hasNews(declared, entry) {
			return
		}
		entry = afresh(entry)
	case record.Retry, record.Waiting:
		if d.givenUpByHand(declared, entry) || d.waits(declared, entry) {
			return
		}
		if over := d.over(declared, entry); over != "" {
			if !d.hasNews(declared, entry) {
				d.giveUp(declared, entry, over)
				return
			}
			entry = afresh(entry)
		}
	case record.Pending:
	}
	d.attempt(declared, entry)
}

// waits reports whether it is too early for another attempt.
func (d *decision) waits(declared Declaration, entry record.Entry) bool {
	if d.broken(declared, entry) {
		return true // Without a time: another process makes the next attempt.
	}
	next := entry.Next
	if newer, has := d.state.Waits[declared.ID]; has {
		next = newer
	}
	if entry.Outcome == record.Retry && !entry.Asked && next.Sub(d.state.Now) > declared.Limits.longestWait() { // mutant: wrong-clock-believed
		return false // A process with a wrong clock has recorded this time.
	}
	// A level-triggered handler that waits without having failed waits for another state, so a change ends the wait.
	held := entry.Asked && (entry.Outcome != record.Waiting || declared.Verb != cause.Reconcile)
	early := d.state.Now.Before(next) && (held || !d.edited(declared, entry)) && !d.answered(entry)
	if early {
		d.wake(next)
	}
	return early
}

// attempt plans an attempt now.
func (d *decision) attempt(declared Declaration, entry record.Entry) {
	reason := declared.reason(entry)
	run := Run{
		Declaration: declared, Reason: reason, Waited: entry.Outcome == record.Waiting,
		Attempt: entry.Attempts + 1, Started: entry.Started,
		MaybeRepeated: d.mayRepeat(reason, entry),
	}
	d.recall(&run, entry)
	if run.Started.IsZero() {
		run.Started = d.state.Now.UTC().Truncate(time.Second)
	}
	if digest, old, kept := seenBy(d.plan.Record, declared.ID); kept && comparing(reason) {
		run.Compared = digest
		if old.Body != nil {
			run.Old, run.HasOld = d.kind.normalized(old.Body), true
		}
	}
	d.plan.Runs = append(d.plan.Runs, run)
}

// mayRepeat reports whether the handler may have run for this cause before. An update that failed permanently was a different change.
func (d *decision) mayRepeat(reason cause.Cause, entry record.Entry) bool {
	uncounted := entry.Outcome == record.Waiting || entry.Outcome == record.Retry // Such a run may not be counted as an attempt.
	failed := entry.Outcome == record.Failed && reason != cause.Update
	recreated := d.plan.Record.Recreated != "" && reason == cause.Create
	return entry.Attempts > 0 || uncounted || failed || recreated || len(entry.Steps) > 0 || d.state.Inherited
}

// comparing reports whether handlers of a verb get the essence that they last finished with.
func comparing(verb cause.Cause) bool { return verb != cause.Create && verb != cause.Reconcile }

func (d *decision) wake(at time.Time) {
	if d.plan.Wake.IsZero() || at.Before(d.plan.Wake) {
		d.plan.Wake = at
	}
}
