package handler

import (
	"errors"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// State is all that a decision depends on.
type State struct {
	Namespace, Name string
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
	// Inherited: the object may have been there when this process began, and has not been settled by it since. Older: it was.
	Inherited, Older bool
	// Recreate is the token by which a person asks for the create handlers once more; "" for none.
	Recreate string
	// Levels holds, by level-triggered handler, how it stands in this process: nothing of it is in the record.
	Levels map[string]record.Entry
	// Woken are the level-triggered handlers that related objects have woken since their last attempt began.
	Woken map[string]bool
	// Release names the delete handler that a person gives up, object.ReleaseAll for all; "" for none.
	Release string
	// Words are what people have said of effects that nobody knows the end of, by the tokens of those.
	Words map[string]string
	// Waits holds, by handler, times to wait for that are newer than what the record says.
	Waits map[string]time.Time
	// Clocks holds, by timer, how it stands in this process.
	Clocks map[string]Clock
	// Held: a daemon of the object has not ended yet.
	Held bool
	Now  time.Time
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
	// Reason is what the handler is told: Create, Update, Delete, Resume, Reconcile or Timer.
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
	// Steps are the parts of the handler that earlier attempts have finished, and the effects that they have begun. Since is the
	// digest of the essence that the oldest of them was done with, if the handler sees another one now. Anew: they were done,
	// and have to be done again.
	Steps map[string]record.Step
	Since string
	Anew  bool
	// Words are what people have said of effects that nobody knows the end of, by the tokens of those.
	Words map[string]string
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
	// Unrecorded tells that no handler which needs a record is for the object, and it has none.
	Unrecorded bool
	// Outside are the handlers that the object is not for.
	Outside map[string]bool
	// Err tells that a filter could not be asked: then nothing is planned. The record is there nevertheless.
	Err error
	// GivenUp are the handlers that are given up without another attempt. Their results are folded in first.
	GivenUp []GivenUp
	// Unreadable tells that what handlers have seen was digested with another key: see readable.
	Unreadable bool
	// Clocks are the state's, as they stand now. There is none where a timer does not run.
	Clocks map[string]Clock
	// Daemons are those that the object is to have.
	Daemons []Declaration
}

// Decide names the cause and plans what to do about it.
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
	d.windClocks()
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
	case cause.Alien:
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

// open begins a plan with the record to work on: the state's, or a new one.
func (k Kind) open(s State, in scope) Plan {
	switch {
	case s.Record == nil && !k.recorded(in):
		return Plan{Record: record.New(s.UID, s.APIVersion), Unrecorded: true}
	case s.Record == nil:
		begun, _ := k.rescope(k.begin(s, in), s, in)
		return Plan{Record: begun, Tidied: true}
	}
	opened, unreadable := k.readable(*s.Record, s.Essence)
	opened, added := k.acquainted(opened, s)
	opened, introduced := k.introduced(opened, s)
	asked := k.asked(s)
	if asked {
		opened = k.recreate(opened, s.Recreate, in)
	}
	opened, moved := k.rescope(opened, s, in)
	abandoned := k.abandoned(opened, s)
	if moved || abandoned { // A creation may have nobody to wait for any more.
		opened = k.settleCreation(opened, s.Essence)
	}
	return Plan{Record: opened, Tidied: unreadable || added || introduced || asked || moved || abandoned, Unreadable: unreadable}
}

// begin makes the record of an object that is handled for the first time, or whose record was lost.
func (k Kind) begin(s State, in scope) record.Record {
	begun := record.New(s.UID, s.APIVersion)
	begun.Recreated = s.Recreate // Who finds no record finds a token that may have been used: only a new one counts.
	if s.Deleting {
		return begun
	}
	if !s.Settled {
		begun = k.recreate(begun, s.Recreate, in)
		begun.Doubted = s.Older
	}
	if (s.Settled || !k.creates(in)) && !k.alien(s, in) {
		begun, begun.Base = k.keep(begun, s.Essence)
	}
	return begun
}

// asked tells whether a person asks for the create handlers once more.
func (k Kind) asked(s State) bool {
	return s.Record != nil && !s.Deleting && s.Recreate != "" && s.Recreate != s.Record.Recreated
}

// recreate makes all create handlers due. Which ones the object is not for is told by rescope.
func (k Kind) recreate(r record.Record, token string, in scope) record.Record {
	r.Recreated = token
	for _, declared := range k.Handlers {
		if declared.Verb == cause.Create || declared.AtCreation && (in.outside[declared.ID] || !in.unborn[declared.ID]) {
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
		Exists: true, Alien: d.kind.alien(d.state, d.scope), Deleting: d.state.Deleting, Marked: d.state.Marked,
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
			facts.Unlooked = facts.Unlooked || d.unlooked(declared)
		}
	}
	return facts
}

// reopened: a create or delete handler that failed for good runs again when its view changes, or a person has answered it.
func (d *decision) reopened(declared Declaration, entry record.Entry) bool {
	return entry.Outcome == record.Failed && d.news(declared, entry)
}

// edited tells whether the handler's view is another one than at its last attempt. Related objects are part of it.
func (d *decision) edited(declared Declaration, entry record.Entry) bool {
	return d.woken(declared) || !d.kind.sameDigest(d.state.UID, declared, entry.Tried, d.state.Essence)
}

// changed tells whether an update handler has something to see that it is not done with.
func (d *decision) changed(declared Declaration) bool {
	if d.scope.outside[declared.ID] {
		return false
	}
	_, old, has := seenBy(d.plan.Record, declared.ID)
	return !has || !d.kind.hasSeen(d.plan.Record, declared, old, d.state.Essence)
}

// resumes tells whether a resume handler has to run in this process.
func (d *decision) resumes(declared Declaration) bool {
	return !d.state.Resumed[declared.ID] && !d.scope.outside[declared.ID]
}

// planCreation plans all handlers that are not finished with the creation.
func (d *decision) planCreation() {
	for _, declared := range d.kind.Handlers {
		if entry := d.plan.Record.Handlers[declared.ID]; creating(declared, entry) {
			d.consider(declared, entry)
		}
	}
}

// planInOrder plans update handlers with something to see, resume handlers that this process has not run yet, and creations
// for handlers that the object came to be for later on.
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
			// The change that it was tried for has been taken back.
			d.plan.Record, d.plan.Tidied = setAside(d.plan.Record, declared, entry), true
		case declared.Verb == cause.Resume && d.resumes(declared):
			d.consider(declared, entry)
		case declared.Verb == cause.Resume && has && !record.Unknown(entry.Steps):
			d.plan.Record, d.plan.Tidied = d.plan.Record.Without(declared.ID), true
		}
	}
}

// considerUpdate considers a change that the handler answers. Of another one it takes note.
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

// consider plans an attempt now, or the time of the next one.
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
		if d.givenUpByHand(declared, entry) || !d.news(declared, entry) {
			return
		}
		entry = afresh(entry)
	case record.Retry, record.Waiting:
		if d.givenUpByHand(declared, entry) || d.waits(declared, entry) {
			return
		}
		if over := d.over(declared, entry); over != "" {
			if !d.news(declared, entry) {
				d.giveUp(declared, entry, over)
				return
			}
			entry = afresh(entry)
		}
	case record.Pending:
	}
	d.attempt(declared, entry)
}

// waits tells whether it is too early for another attempt.
func (d *decision) waits(declared Declaration, entry record.Entry) bool {
	next := entry.Next
	if newer, has := d.state.Waits[declared.ID]; has {
		next = newer
	}
	if entry.Outcome == record.Retry && !entry.Asked && next.Sub(d.state.Now) > declared.Limits.longestWait() { // mutant: wrong-clock-believed
		return false // A process whose clock was wrong has recorded it.
	}
	// Who looks at a state, and has not failed, waits for just that: another state to look at.
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
	if _, old, kept := seenBy(d.plan.Record, declared.ID); kept && old.Body != nil && comparing(reason) {
		run.Old, run.HasOld = d.kind.today(old.Body), true
	}
	d.plan.Runs = append(d.plan.Runs, run)
}

// mayRepeat tells whether the handler may have run for this cause before. An update that failed for good was another change.
func (d *decision) mayRepeat(reason cause.Cause, entry record.Entry) bool {
	waited := entry.Outcome == record.Waiting // It counts no attempt.
	failed := entry.Outcome == record.Failed && reason != cause.Update
	recreated := d.plan.Record.Recreated != "" && reason == cause.Create
	return entry.Attempts > 0 || waited || failed || recreated || len(entry.Steps) > 0 || d.state.Inherited
}

// comparing tells whether handlers of a verb are shown what they were last done with.
func comparing(verb cause.Cause) bool { return verb != cause.Create && verb != cause.Reconcile }

func (d *decision) wake(at time.Time) {
	if d.plan.Wake.IsZero() || at.Before(d.plan.Wake) {
		d.plan.Wake = at
	}
}
