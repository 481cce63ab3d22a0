package handler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Result is the result of one attempt.
type Result struct {
	Outcome record.Outcome
	// Delay is the time until the next attempt. Asked means that the handler named it.
	Delay   time.Duration
	Asked   bool
	Message string
	// Refused means that the API server rejected what the handler wrote as invalid.
	Refused bool
	// GaveUp says which limit made the failure final. Ignored means that an error counts as success.
	GaveUp  string
	Ignored bool
	// Broken means that the handler has a programming error. The outcome is Retry, but only another process retries it.
	Broken bool
	// Steps are the finished parts of the handler, of this attempt and earlier ones. With the outcome Pending, they are everything
	// that is known about an attempt in progress.
	Steps map[string]record.Step
}

// Fold adds the result of a run to the record. Seen is the essence that the handler got, with the handler's own changes.
func (k Kind) Fold(r record.Record, run Run, result Result, seen object.Body, now time.Time) record.Record {
	if !run.Recorded() || result.Outcome != record.Done && createdElsewhere(r, run) {
		return r // Handlers without a record are kept in memory: see FoldLevel and FoldTimer.
	}
	return k.fold(r, run, result, seen, now)
}

func (k Kind) fold(r record.Record, run Run, result Result, seen object.Body, now time.Time) record.Record {
	before, previous := r, r.Handlers[run.ID]
	entry := record.Entry{
		Cause: string(run.Reason), Outcome: result.Outcome, Seen: previous.Seen,
		Attempts: run.Attempt - 1, Started: run.Started, Message: record.Shorten(result.Message), Late: previous.Late,
	}
	if result.Outcome != record.Done {
		entry.Tried = k.viewDigest(r.UID, run.Declaration, seen)
	}
	r, entry = k.remembering(r, entry, run, result, seen)
	switch result.Outcome {
	case record.Waiting:
		same := sameSteps(previous.Steps, entry.Steps) && k.sameDigest(r.UID, run.Declaration, previous.Tried, seen)
		if previous.Outcome == record.Waiting && same {
			return before // Waiting is written only once, so that continued waiting causes no writes.
		}
		entry.Next, entry.Asked = due(now, result.Delay), true
	case record.Retry:
		entry.Next, entry.Asked = due(now, result.Delay), result.Asked
		entry = counted(entry, run, result)
	case record.Failed:
		entry.Attempts = run.Attempt
		if run.Reason == cause.Update && !keepsEffects(entry) {
			r, entry.Seen = k.keep(r, seen)
		}
	case record.Done:
		entry = record.Entry{Cause: string(run.Reason), Outcome: record.Done}
		if run.Reason == cause.Create || run.Reason == cause.Update {
			r, entry.Seen = k.keepOldest(r, run, seen)
		}
	case record.Pending:
		entry = underWay(previous, entry, run)
	case record.Outside:
	}
	if run.Reason == cause.Resume && !entry.Outcome.Open() && !keepsEffects(entry) {
		return r.Without(run.ID)
	}
	return r.With(run.ID, entry)
}

// createdElsewhere reports whether another process has finished the handler's creation. A finished creation stays finished.
func createdElsewhere(r record.Record, run Run) bool {
	entry, open := r.Handlers[run.ID]
	return run.Reason == cause.Create && (entry.Outcome == record.Done || !open && r.Base != "")
}

// Superseded reports whether another process has finished what the run was for, according to a newer record, while the run has ended without success. Seen is as
// for Fold. What the run says of the object was true before, so it is not to be stored.
func (k Kind) Superseded(r record.Record, run Run, result Result, seen object.Body) bool {
	if result.Outcome == record.Done || result.Outcome == record.Pending {
		return false
	}
	if run.Reason == cause.Update {
		digest, kept, found := seenBy(r, run.ID)
		return found && digest != run.Compared && k.hasSeen(r, run.Declaration, kept, seen)
	}
	return createdElsewhere(r, run)
}

// due returns the time after delay, rounded up to the milliseconds that a record stores.
func due(now time.Time, delay time.Duration) time.Time {
	at := now.UTC().Add(delay)
	if whole := at.Truncate(time.Millisecond); !whole.Equal(at) {
		return whole.Add(time.Millisecond)
	}
	return at
}

// Settle closes what has finished: a creation whose handlers have all ended, an update that every handler has seen, a deletion.
// Current is the newest essence that handlers got. Closed parts are removed from the record.
func (k Kind) Settle(r record.Record, current object.Body) record.Record {
	r = k.formerly(k.undeclared(r))
	r = k.settleCreation(r, current)
	r = k.settleUpdates(r, current)
	r.Deleted = r.Deleted || k.deletionDone(r)
	if r.Deleted {
		r = dropSuperseded(r)
	}
	return r.Pruned()
}

// settleCreation closes the creation. Update handlers then start from the oldest essence that a create handler succeeded with.
func (k Kind) settleCreation(r record.Record, current object.Body) record.Record {
	oldest := ""
	for _, declared := range k.Handlers {
		entry := r.Handlers[declared.ID]
		if blocksCreation(declared, entry) {
			return r
		}
		if declared.Verb == cause.Create && entry.Outcome == record.Done && (oldest == "" || r.Age(entry.Seen) < r.Age(oldest)) {
			oldest = entry.Seen
		}
	}
	if r.Base == "" {
		if r.Base = oldest; oldest == "" {
			r, r.Base = k.keep(r, current)
		}
		r = k.closed(r)
	}
	r.Doubted = r.Doubted && k.Creating(r)
	return k.withoutDone(r, cause.Create)
}

// settleUpdates moves Base to the current essence once every update handler has seen it.
func (k Kind) settleUpdates(r record.Record, current object.Body) record.Record {
	finished := false
	for _, declared := range k.Handlers {
		if declared.Verb != cause.Update {
			continue
		}
		entry, has := r.Handlers[declared.ID]
		if entry.Outcome == record.Outside {
			continue
		}
		_, kept, found := seenBy(r, declared.ID)
		if has && entry.Outcome.Open() || !found || !k.hasSeen(r, declared, kept, current) {
			return r
		}
		finished = finished || has
	}
	if finished {
		r, r.Base = k.keep(r, current)
	}
	return k.withoutDone(r, cause.Update)
}

func (k Kind) withoutDone(r record.Record, verb cause.Cause) record.Record {
	for _, declared := range k.Handlers {
		if declared.Verb == verb && r.Handlers[declared.ID].Outcome == record.Done {
			r = r.Without(declared.ID)
		}
	}
	return r
}

// dropSuperseded drops the entries that the deletion has made obsolete.
func dropSuperseded(r record.Record) record.Record {
	for id, entry := range r.Handlers {
		if entry.Cause != string(cause.Delete) {
			r = r.Without(id)
		}
	}
	return r
}

// deletionDone reports whether no delete handler blocks the deletion. One that has failed permanently does, unless it releases.
func (k Kind) deletionDone(r record.Record) bool {
	for _, declared := range k.Handlers {
		if declared.Verb == cause.Delete && declared.keeps(r.Handlers[declared.ID]) {
			return false
		}
	}
	return k.has(cause.Delete)
}
