package handler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// planDaemons lists the daemons that the object is to have.
func (d *decision) planDaemons() {
	for _, declared := range d.kind.Handlers {
		if declared.Verb == cause.Daemon && !d.scope.outside[declared.ID] && !d.state.Deleting {
			d.plan.Daemons = append(d.plan.Daemons, declared)
		}
	}
}

// Lasted is the attempt of a daemon that has run from one time to another, as it counts. One that has lasted longer than
// the longest back-off has done well: what ends it is a first failure.
func (r Run) Lasted(from, to time.Time) Run {
	longest := r.Limits.LongestBackoff
	if longest == 0 {
		longest = longestBackoff
	}
	if to.Sub(from) > longest {
		r.Attempt, r.Started = 1, from
	}
	return r
}

// After is the attempt of a daemon that follows one with this result. It is false where none does.
func (r Run) After(result Result) (Run, bool) {
	r.MaybeRepeated, r.Waited = true, result.Outcome == record.Waiting
	switch result.Outcome {
	case record.Retry:
		r.Attempt++
		return r, true
	case record.Waiting:
		return r, true
	default:
		return r, false
	}
}
