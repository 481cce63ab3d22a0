package handler

import (
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// OnError is what a plain error means: one for which the handler has not said itself what it means.
type OnError int

// Retry makes another attempt after the back-off. Fail is final. Ignore counts as success.
const (
	Retry OnError = iota
	Fail
	Ignore
)

// Limits say how often, how long and how fast a handler is tried. The zero value is without limits, with the usual
// back-off.
type Limits struct {
	// MaxAttempts is the number of attempts after which the failure is final; 0 for none.
	MaxAttempts int
	// Timeout is how long after the first attempt the last one may start; 0 for no end.
	Timeout time.Duration
	// FirstBackoff and LongestBackoff are those of plain errors; 0 for the usual ones.
	FirstBackoff, LongestBackoff time.Duration
	OnError                      OnError
}

// refusedLimit is the attempt from which on it is final that the API server finds invalid what the handler writes: it
// would be the same again, and what the handler does outside would be done again for ever.
const refusedLimit = 10

// Judge makes the result that counts of the bare one of an attempt: it says what a plain error means, how long the
// back-off is, and whether there can be another attempt at all.
func (r Run) Judge(uid string, bare Result, now time.Time) Result {
	if bare.Outcome == record.Retry && !bare.Asked {
		switch r.Limits.OnError {
		case Fail:
			bare.Outcome = record.Failed
		case Ignore:
			return Result{Outcome: record.Done, Ignored: true}
		case Retry:
			bare.Delay = r.Limits.backoff(uid, r.ID, r.Attempt)
		}
	}
	return r.limited(bare, now)
}

// limited makes a result final when no other attempt may follow it.
func (r Run) limited(result Result, now time.Time) Result {
	if !result.Outcome.Open() {
		return result
	}
	attempts := r.Attempt
	if result.Outcome == record.Waiting {
		attempts-- // Waiting is not counted.
	}
	over := r.Limits.over(attempts, r.Started, now.Add(result.Delay))
	if over == "" && result.Refused && attempts >= refusedLimit {
		over = fmt.Sprintf("what it writes is not valid, after %d attempts", attempts)
	}
	if over == "" {
		return result
	}
	return Result{Outcome: record.Failed, GaveUp: over, Message: gaveUp(over, result.Message)}
}

// over tells why no attempt may start at this time, "" if one may.
func (l Limits) over(attempts int, started, at time.Time) string {
	switch {
	case l.MaxAttempts > 0 && attempts >= l.MaxAttempts:
		return fmt.Sprintf("MaxAttempts(%d) are made", l.MaxAttempts)
	case l.Timeout > 0 && !started.IsZero() && at.After(started.Add(l.Timeout)):
		return fmt.Sprintf("Timeout(%s): no attempt may start later after the first", l.Timeout)
	default:
		return ""
	}
}

// gaveUp is the message of a failure that is final because of a limit.
func gaveUp(over, last string) string {
	if last == "" {
		return "gave up, " + over
	}
	return "gave up, " + over + ": " + last
}

// GivenUp is a handler that is not tried any more, and the result that counts in place of another attempt.
type GivenUp struct {
	Run
	Result Result
	// Why is for people.
	Why string
	// ByHand: a person asked for it, so that the object can go.
	ByHand bool
}

// over tells which limit an open handler has passed since its last attempt, "" for none: while nobody looked, or by an
// attempt that ended the process. Of level-triggered handlers, which have no record, it is told after an attempt only.
func (d *decision) over(declared Declaration, entry record.Entry) string {
	if declared.Verb == cause.Reconcile {
		return ""
	}
	return declared.Limits.over(entry.Attempts, entry.Started, d.state.Now)
}

// giveUp makes the failure of an open handler final.
func (d *decision) giveUp(declared Declaration, entry record.Entry, over string) {
	d.plan.GivenUp = append(d.plan.GivenUp, GivenUp{
		Run: declared.last(entry), Why: over, Result: Result{Outcome: record.Failed, Message: gaveUp(over, entry.Message)},
	})
}

// last is the attempt that an entry tells of.
func (d Declaration) last(entry record.Entry) Run {
	return Run{Declaration: d, Reason: d.reason(entry), Attempt: entry.Attempts, Started: entry.Started}
}
