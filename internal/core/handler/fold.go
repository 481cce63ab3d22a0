package handler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Result is how one attempt ended.
type Result struct {
	Outcome record.Outcome
	// Delay is the time until the next attempt; Asked tells that the handler named it.
	Delay   time.Duration
	Asked   bool
	Message string
	// Refused: the API server found invalid what the handler wrote.
	Refused bool
	// GaveUp tells which limit has made the failure final. Ignored: what counts as success was an error.
	GaveUp  string
	Ignored bool
	// Steps are the parts of the handler that are done, in this attempt or before. With the outcome Pending they are all that
	// is known of an attempt that goes on.
	Steps map[string]record.Step
}

// Fold enters the result of a run into the record. Seen is the essence that the handler was given, with its own
// changes.
func (k Kind) Fold(r record.Record, run Run, result Result, seen object.Body, now time.Time) record.Record {
	if !run.Recorded() || overtaken(r, run, result) {
		return r // How one without a record stands is known to this process alone: see FoldLevel and FoldTimer.
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
			return before // Waiting is written once; how long goes on is no news.
		}
		entry.Next, entry.Asked = due(now, result.Delay), true
	case record.Retry:
		entry.Attempts = run.Attempt
		entry.Next, entry.Asked = due(now, result.Delay), result.Asked
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

// overtaken tells whether another process has finished the handler's creation while this run was made, which has not. What is done stays done.
func overtaken(r record.Record, run Run, result Result) bool {
	entry, open := r.Handlers[run.ID]
	return run.Reason == cause.Create && result.Outcome != record.Done && (entry.Outcome == record.Done || !open && r.Base != "")
}

// due is the moment after delay, in the whole milliseconds that a record keeps, never earlier than asked.
func due(now time.Time, delay time.Duration) time.Time {
	at := now.UTC().Add(delay)
	if whole := at.Truncate(time.Millisecond); !whole.Equal(at) {
		return whole.Add(time.Millisecond)
	}
	return at
}

// Settle closes what is finished: a creation whose handlers have all ended, an update that every handler has seen, a
// deletion. Current is the newest essence that was handed out. What is closed takes no room in the record.
func (k Kind) Settle(r record.Record, current object.Body) record.Record {
	r = k.formerly(k.undeclared(r))
	r = k.settleCreation(r, current)
	r = k.settleUpdates(r, current)
	r.Deleted = r.Deleted || k.deletionDone(r)
	if r.Deleted {
		r = superseded(r)
	}
	return r.Pruned()
}

// settleCreation: update handlers start from the oldest essence that a create handler succeeded with.
func (k Kind) settleCreation(r record.Record, current object.Body) record.Record {
	oldest := ""
	for _, declared := range k.Handlers {
		entry := r.Handlers[declared.ID]
		if creatingStill(declared, entry) {
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
	r.Doubted = r.Doubted && k.creatingAny(r)
	return k.withoutDone(r, cause.Create)
}

// settleUpdates: once every update handler has seen what is current, the record starts afresh from there.
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

// superseded drops what the deletion has made void.
func superseded(r record.Record) record.Record {
	for id, entry := range r.Handlers {
		if entry.Cause != string(cause.Delete) {
			r = r.Without(id)
		}
	}
	return r
}

// deletionDone tells whether no delete handler that the object is for keeps it. One that failed for good does, unless it
// releases.
func (k Kind) deletionDone(r record.Record) bool {
	for _, declared := range k.Handlers {
		if declared.Verb == cause.Delete && declared.keeps(r.Handlers[declared.ID]) {
			return false
		}
	}
	return k.has(cause.Delete)
}
