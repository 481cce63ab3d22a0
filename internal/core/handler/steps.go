package handler

import (
	"bytes"
	"maps"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// recall gives a run the steps that are already done.
//
// A change of the handler's view does not invalidate finished steps. So that the change is not lost, the handler is recorded as
// finished with the essence that its oldest step has seen, and update handlers see the rest as a change. That does not work if the
// change is reverted: then all steps are done again, except effects outside the cluster.
func (d *decision) recall(run *Run, entry record.Entry) {
	run.Steps, run.Words = entry.Steps, d.state.Words
	since, kept := d.plan.Record.Essence(entry.Since)
	if !kept || len(entry.Steps) == 0 || !entry.Mixed && !d.edited(run.Declaration, entry) {
		return
	}
	_, viewed := since.Views[run.ID]
	known := since.Body != nil || viewed
	if entry.Mixed && known && d.kind.hasSeen(d.plan.Record, run.Declaration, since, d.state.Essence) {
		run.Steps, run.Redo = record.Effects(entry.Steps), true
		return
	}
	run.Since = entry.Since
}

// withSteps adds the finished steps, which are stored while the handling continues. It keeps steps that another process has recorded
// for the same handling.
func (k Kind) withSteps(r record.Record, entry record.Entry, run Run, result Result, seen object.Body) (record.Record, record.Entry) {
	entry.Steps = result.Steps
	switch previous := r.Handlers[run.ID]; {
	case sameHandling(previous, run) && !run.Redo:
		entry.Steps = record.Join(previous.Steps, result.Steps)
	case previous.Cause == entry.Cause: // mutant: intent-of-another-replica
		// Effects outlast a handling that another process has ended.
		entry.Steps = record.Join(lasting(previous), result.Steps)
	}
	entry.Steps = record.NoteAnswers(entry.Steps, run.Words, digestOf)
	if len(entry.Steps) == 0 || run.Reason != cause.Create && run.Reason != cause.Update {
		return r, entry
	}
	r, entry.Since = k.keepOldest(r, run, seen)
	entry.Mixed = run.Since != "" && entry.Since == run.Since
	return r, entry
}

// keepOldest keeps the oldest essence that a part of the run was done with.
func (k Kind) keepOldest(r record.Record, run Run, seen object.Body) (record.Record, string) {
	if _, kept := r.Essence(run.Since); kept {
		return r, run.Since
	}
	return k.keep(r, seen)
}

// underWay returns the entry of an attempt in progress: what was known before, and the finished steps. If the attempt does not end,
// the handler is called again.
func underWay(previous, fresh record.Entry, run Run) record.Entry {
	if !sameHandling(previous, run) {
		return fresh
	}
	previous.Steps, previous.Since, previous.Mixed = fresh.Steps, fresh.Since, fresh.Mixed
	previous.Tried, previous.Started = fresh.Tried, fresh.Started
	return previous
}

// sameHandling reports whether an entry belongs to the same handling as the run. After an edit that follows an exceeded limit, a new
// handling begins, with a new start time.
func sameHandling(entry record.Entry, run Run) bool {
	begun := entry.Started.IsZero() || entry.Started.Equal(run.Started)
	return entry.Cause == string(run.Reason) && entry.Outcome.Open() && begun
}

func sameSteps(some, others map[string]record.Step) bool {
	return maps.EqualFunc(some, others, func(one, other record.Step) bool {
		known := one.Intent != nil && other.Intent != nil && *one.Intent == *other.Intent
		return bytes.Equal(one.Result, other.Result) && (known || one.Intent == other.Intent)
	})
}
