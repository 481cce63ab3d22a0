package handler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// planDaemons lists the daemons that should run for the object.
func (d *decision) planDaemons() {
	for _, declared := range d.kind.Handlers {
		if declared.Verb == cause.Daemon && !d.scope.outside[declared.ID] && !d.state.Deleting {
			d.plan.Daemons = append(d.plan.Daemons, declared)
		}
	}
}

// Lasted returns the attempt of a daemon that ran from one time to another, as it counts for the limits. A daemon that ran longer
// than the longest backoff was successful, so that its failure counts as the first one.
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

// After returns the attempt of a daemon that follows one with this result. It returns false if there is none.
func (r Run) After(result Result) (Run, bool) {
	r.MaybeRepeated, r.Waited = true, result.Outcome == record.Waiting
	switch result.Outcome {
	case record.Retry:
		r.Attempt++
		return r, !result.Broken
	case record.Waiting:
		return r, true
	default:
		return r, false
	}
}
