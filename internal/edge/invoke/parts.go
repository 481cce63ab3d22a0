package invoke

import (
	"strings"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// PartsError holds the failures of independent parts of a handler.
type PartsError struct{ Parts []error }

// Error returns the texts of all failures.
func (e *PartsError) Error() string {
	texts := make([]string, len(e.Parts))
	for i, part := range e.Parts {
		texts[i] = part.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the failures.
func (e *PartsError) Unwrap() []error { return e.Parts }

// verdict returns the verdict for all parts together. It is final if no part has anything left to try. Otherwise it is a failure if any
// part has failed. The delay is the shortest requested one, or the backoff if not every part has requested one.
func (e *PartsError) verdict() Verdict {
	joined := Verdict{Outcome: record.Failed}
	for _, part := range e.Parts {
		joined = joined.with(Classify(part))
	}
	return joined
}

// with returns the verdict for two parts together.
func (v Verdict) with(other Verdict) Verdict {
	switch {
	case other.Outcome == record.Failed:
		return v
	case v.Outcome == record.Failed:
		return other
	}
	joined := Verdict{Outcome: record.Waiting, Asked: v.Asked && other.Asked}
	if v.Outcome == record.Retry || other.Outcome == record.Retry {
		joined.Outcome = record.Retry
	}
	if joined.Asked {
		joined.Delay = min(v.Delay, other.Delay)
	}
	return joined
}
