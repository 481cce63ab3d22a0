package invoke

import (
	"strings"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// PartsError is what went wrong in parts of a handler that do not wait for each other.
type PartsError struct{ Parts []error }

// Error is the texts of all parts.
func (e *PartsError) Error() string {
	texts := make([]string, len(e.Parts))
	for i, part := range e.Parts {
		texts[i] = part.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives the failures.
func (e *PartsError) Unwrap() []error { return e.Parts }

// verdict is that of all parts: final if no part has anything left to try, else a failure if a part has failed, with
// back-off unless all that are tried again have named a time, of which the first counts.
func (e *PartsError) verdict() Verdict {
	joined := Verdict{Outcome: record.Failed}
	for _, part := range e.Parts {
		joined = joined.with(Classify(part))
	}
	return joined
}

// with joins what is to be done about two parts.
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
