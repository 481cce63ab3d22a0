package handler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Recorded reports whether objects of the kind get a record. Level-triggered handlers, timers and daemons need none, because a new
// process starts them from the beginning.
func (k Kind) Recorded() bool {
	for _, declared := range k.Handlers {
		if declared.Recorded() {
			return true
		}
	}
	return false
}

// Learns reports whether a run of the plan changes the record.
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

// needsReconcile reports whether a level-triggered handler has to look at its view, for the first time or again.
func (d *decision) needsReconcile(declared Declaration) bool {
	if d.scope.outside[declared.ID] {
		return false
	}
	entry, has := d.state.Levels[declared.ID]
	return !has || d.woken(declared) || entry.Outcome.Open() || !d.kind.sameDigest(d.state.UID, declared, entry.Tried, d.state.Essence)
}

// woken reports whether a related object has changed since the handler's last attempt.
func (d *decision) woken(declared Declaration) bool {
	return declared.Verb == cause.Reconcile && d.state.Woken[declared.ID]
}

// planLevels plans the level-triggered handlers. They run after all others, which may change what they look at.
func (d *decision) planLevels() {
	for _, declared := range d.kind.Handlers {
		if declared.Verb != cause.Reconcile || !d.needsReconcile(declared) {
			continue
		}
		entry := d.state.Levels[declared.ID]
		if !entry.Outcome.Open() {
			entry = record.Entry{} // The previous handling has ended; attempts are counted from the beginning for a new view.
		}
		d.consider(declared, entry)
	}
}

// FoldLevel returns the state of a level-triggered handler after a run. Seen is the essence that the handler got, with the handler's
// own changes, so that these do not trigger it again.
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
		entry = counted(entry, run, result)
	case record.Done, record.Failed, record.Pending, record.Outside:
	}
	return entry
}
