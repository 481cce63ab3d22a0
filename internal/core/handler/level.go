package handler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Recorded tells whether objects of the kind get a record. Level-triggered handlers, timers and daemons need none: a new process
// looks at everything anew.
func (k Kind) Recorded() bool {
	for _, declared := range k.Handlers {
		if declared.Recorded() {
			return true
		}
	}
	return false
}

// Learns tells whether a run of the plan is entered into the record.
func (p Plan) Learns() bool {
	if len(p.GivenUp) > 0 {
		return true
	}
	for _, run := range p.Runs {
		if run.Recorded() {
			return true
		}
	}
	return false
}

// unlooked tells whether a level-triggered handler has yet to look at its view, or to look at it again.
func (d *decision) unlooked(declared Declaration) bool {
	if d.scope.outside[declared.ID] {
		return false
	}
	entry, has := d.state.Levels[declared.ID]
	return !has || d.woken(declared) || entry.Outcome.Open() || !d.kind.sameDigest(d.state.UID, declared, entry.Tried, d.state.Essence)
}

// woken tells whether a related object has changed since the handler last looked.
func (d *decision) woken(declared Declaration) bool {
	return declared.Verb == cause.Reconcile && d.state.Woken[declared.ID]
}

// planLevels plans the level-triggered handlers: after all others, which may change what they look at.
func (d *decision) planLevels() {
	for _, declared := range d.kind.Handlers {
		if declared.Verb != cause.Reconcile || !d.unlooked(declared) {
			continue
		}
		entry := d.state.Levels[declared.ID]
		if !entry.Outcome.Open() {
			entry = record.Entry{} // What it is done with is over: another view begins anew.
		}
		d.consider(declared, entry)
	}
}

// FoldLevel tells how a level-triggered handler stands after a run. Seen is the essence that it was given, with its own
// changes: they are no reason to run it again.
func (k Kind) FoldLevel(uid string, run Run, result Result, seen object.Body, now time.Time) record.Entry {
	entry := record.Entry{
		Cause: string(run.Reason), Outcome: result.Outcome, Tried: k.viewDigest(uid, run.Declaration, seen),
		Attempts: run.Attempt, Started: run.Started,
	}
	switch result.Outcome {
	case record.Waiting:
		entry.Attempts--
		entry.Next, entry.Asked = due(now, result.Delay), true
	case record.Retry:
		entry.Next, entry.Asked = due(now, result.Delay), result.Asked
	case record.Done, record.Failed, record.Pending, record.Outside:
	}
	return entry
}
