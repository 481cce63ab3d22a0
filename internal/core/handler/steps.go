package handler

import (
	"bytes"
	"maps"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// stepsAfter are the steps that are to be remembered after an attempt: all that are done, as long as the handling goes on.
// What somebody else has recorded of the same handling meanwhile is not forgotten.
func stepsAfter(previous record.Entry, run Run, result Result) map[string]record.Step {
	switch {
	case !result.Outcome.Open():
		return nil
	case sameHandling(previous, run):
		return record.Join(previous.Steps, result.Steps)
	default:
		return result.Steps
	}
}

// underWay is the entry of an attempt that goes on: what was known before, and the steps that are done. Should the attempt
// not end, the handler is called again.
func underWay(previous, fresh record.Entry, run Run) record.Entry {
	if !sameHandling(previous, run) {
		return fresh
	}
	previous.Steps, previous.Tried, previous.Started = fresh.Steps, fresh.Tried, fresh.Started
	return previous
}

// sameHandling tells whether an entry is of the handling that the run belongs to. One whose limits were passed before an
// edit is another one, which begins at another time.
func sameHandling(entry record.Entry, run Run) bool {
	begun := entry.Started.IsZero() || entry.Started.Equal(run.Started)
	return entry.Cause == string(run.Reason) && entry.Outcome.Open() && begun
}

func sameSteps(some, others map[string]record.Step) bool {
	return maps.EqualFunc(some, others, func(one, other record.Step) bool { return bytes.Equal(one.Result, other.Result) })
}
