package handler

import (
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// OnError says how to treat a plain error, for which the handler itself has not said that.
type OnError int

// Retry makes another attempt after the backoff. Fail is final. Ignore counts as success.
const (
	Retry OnError = iota
	Fail
	Ignore
)

// Limits say how often, how long and how fast a handler is retried. The zero value has no limits and the default backoff.
type Limits struct {
	// MaxAttempts is the number of attempts after which the failure is final, or 0 for no limit.
	MaxAttempts int
	// Timeout is how long after the first attempt the last one may start, or 0 for no limit.
	Timeout time.Duration
	// FirstBackoff and LongestBackoff apply to plain errors. 0 means the defaults.
	FirstBackoff, LongestBackoff time.Duration
	OnError                      OnError
}

// refusedLimit is the number of attempts after which it is final that the API server rejects what the handler writes as invalid.
// Further attempts would write the same, and would repeat what the handler does outside the cluster.
const refusedLimit = 10

// Judge turns the bare result of an attempt into the one that counts: it decides what a plain error means, how long the backoff is,
// and whether there can be another attempt. A programming error is never final, so that a repaired release runs the handler.
func (r Run) Judge(uid string, bare Result, now time.Time) Result {
	if bare.Broken {
		bare.Delay = r.Limits.backoff(uid, r.ID, r.Attempt)
		return bare
	}
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

// limited makes a result final if no other attempt may follow.
func (r Run) limited(result Result, now time.Time) Result {
	if !result.Outcome.Open() {
		return result
	}
	attempts := r.Attempt
	if result.Outcome == record.Waiting {
		attempts-- // Waiting does not count as an attempt.
	}
	over := r.Limits.over(attempts, r.Started, now.Add(result.Delay))
	if over == "" && result.Refused && attempts >= refusedLimit {
		over = fmt.Sprintf("the API server rejects what the handler writes as invalid, after %d attempts", attempts)
	}
	if over == "" {
		return result
	}
	return Result{Outcome: record.Failed, GaveUp: over, Message: gaveUp(over, result.Message)}
}

// over says why no attempt may start at this time. It returns "" if one may.
func (l Limits) over(attempts int, started, at time.Time) string {
	switch {
	case l.MaxAttempts > 0 && attempts >= l.MaxAttempts:
		return fmt.Sprintf("MaxAttempts(%d) reached", l.MaxAttempts)
	case l.Timeout > 0 && !started.IsZero() && at.After(started.Add(l.Timeout)):
		return fmt.Sprintf("RetryFor(%s) exceeded: no attempt may start that long after the first", l.Timeout)
	default:
		return ""
	}
}

// gaveUp returns the message of a failure that a limit has made final.
func gaveUp(over, last string) string {
	if last == "" {
		return "gave up, " + over
	}
	return "gave up, " + over + ": " + last
}

// GivenUp is a handler that is not attempted any more, and the result that counts instead.
type GivenUp struct {
	Run
	Result Result
	// Why is the reason, as text for people.
	Why string
	// ByHand means that a user requested it, so that the object can be deleted.
	ByHand bool
}

// over says which limit an open handler has exceeded since its last attempt, because no process ran or because the attempt ended the
// process. It returns "" for none. Level-triggered handlers have no record, so that their limits are checked only after an attempt.
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

// last returns the attempt that an entry describes.
func (d Declaration) last(entry record.Entry) Run {
	return Run{Declaration: d, Reason: d.reason(entry), Attempt: entry.Attempts, Started: entry.Started}
}
