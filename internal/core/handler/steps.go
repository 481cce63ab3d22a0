package handler

import (
	"bytes"
	"maps"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// recall tells a run which steps are done already.
//
// A step is not made again because somebody has changed what the handler looks at since. So that the change is not lost,
// the handler is done in the end with what its oldest step has seen, and update handlers see the rest as a change. That cannot
// be told when the change is taken back: then all steps are made again, but for effects outside, which are not.
func (d *decision) recall(run *Run, entry record.Entry) {
	run.Steps, run.Words = entry.Steps, d.state.Words
	since, kept := d.plan.Record.Essence(entry.Since)
	if !kept || len(entry.Steps) == 0 || !entry.Mixed && !d.edited(run.Declaration, entry) {
		return
	}
	_, viewed := since.Views[run.ID]
	known := since.Body != nil || viewed
	if entry.Mixed && known && d.kind.hasSeen(d.plan.Record, run.Declaration, since, d.state.Essence) {
		run.Steps, run.Anew = record.Effects(entry.Steps), true
		return
	}
	run.Since = entry.Since
}

// withSteps enters the steps that are to be remembered as long as the handling goes on: all that are done. What somebody else
// has recorded of the same handling meanwhile is not forgotten.
func (k Kind) withSteps(r record.Record, entry record.Entry, run Run, result Result, seen object.Body) (record.Record, record.Entry) {
	entry.Steps = result.Steps
	switch previous := r.Handlers[run.ID]; {
	case sameHandling(previous, run) && !run.Anew:
		entry.Steps = record.Join(previous.Steps, result.Steps)
	case previous.Cause == entry.Cause: // mutant: intent-of-another-replica
		// Effects outlast a handling that another process has ended.
		entry.Steps = record.Join(lasting(previous), result.Steps)
	}
	entry.Steps = record.Hear(entry.Steps, run.Words, digestOf)
	if len(entry.Steps) == 0 || run.Reason != cause.Create && run.Reason != cause.Update {
		return r, entry
	}
	r, entry.Since = k.keepOldest(r, run, seen)
	entry.Mixed = run.Since != "" && entry.Since == run.Since
	return r, entry
}

// keepOldest keeps the oldest essence that something which a run counts as done was done with.
func (k Kind) keepOldest(r record.Record, run Run, seen object.Body) (record.Record, string) {
	if _, kept := r.Essence(run.Since); kept {
		return r, run.Since
	}
	return k.keep(r, seen)
}

// underWay is the entry of an attempt that goes on: what was known before, and the steps that are done. Should the attempt
// not end, the handler is called again.
func underWay(previous, fresh record.Entry, run Run) record.Entry {
	if !sameHandling(previous, run) {
		return fresh
	}
	previous.Steps, previous.Since, previous.Mixed = fresh.Steps, fresh.Since, fresh.Mixed
	previous.Tried, previous.Started = fresh.Tried, fresh.Started
	return previous
}

// sameHandling tells whether an entry is of the handling that the run belongs to. One whose limits were passed before an
// edit is another one, which begins at another time.
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
