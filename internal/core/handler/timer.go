package handler

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Timing says when a timer runs.
type Timing struct {
	// Interval is the time from the end of a run to the next one. Sharp: to the next moment of the grid instead, which begins
	// with the first run.
	Interval time.Duration
	Sharp    bool
	// Idle is how long what the timer looks at must have been as it is; 0 for not at all.
	Idle time.Duration
	// Jitter is by how much a run is put off at most, by chance.
	Jitter time.Duration
	// Delay is how long an object waits for its first run in this process; nil for not at all. It may panic.
	Delay func(object.Body) time.Duration
}

// Clock is how a timer of one object stands in this process.
type Clock struct {
	// Next is when the next run is due, where it need not wait for anything else.
	Next time.Time
	// Origin is the first moment of the grid; zero before the first run.
	Origin time.Time
	// Ticks counts the runs that are over, with all their attempts.
	Ticks int
	// View is the digest of what the timer looks at, where it has to be known, and Quiet since when it has been so.
	View  string
	Quiet time.Time
	// Outcome is that of the last attempt, of Attempts since Started; none are left when a run has succeeded. Asked tells
	// that the handler has named the time of the next one.
	Outcome  record.Outcome
	Asked    bool
	Attempts int
	Started  time.Time
}

// Retries tells whether the next run is another attempt, or was asked for, out of the timer's turn.
func (c Clock) Retries() bool { return c.Outcome == record.Retry || c.Outcome == record.Waiting }

// windClocks brings the clocks of all timers that the object is for up to now. The others have none.
func (d *decision) windClocks() {
	d.plan.Clocks = map[string]Clock{}
	for _, declared := range d.kind.Handlers {
		if declared.Verb != cause.Timer || d.scope.outside[declared.ID] || d.state.Deleting {
			continue
		}
		clock, known := d.state.Clocks[declared.ID]
		if !known {
			delay, err := declared.Timing.delay(d.state)
			if err != nil {
				d.plan.Err = errors.Join(d.plan.Err, fmt.Errorf("the initial delay of handler %q cannot be told: %w", declared.ID, err))
				continue
			}
			clock = Clock{Next: d.state.Now.Add(delay), Quiet: d.state.Now}
		}
		d.plan.Clocks[declared.ID] = d.kind.lookedAt(clock, declared, d.state)
	}
}

// delay asks how long the object waits for its first run.
func (t Timing) delay(s State) (time.Duration, error) {
	if t.Delay == nil {
		return 0, nil
	}
	var delay time.Duration
	_, err := filter.Test(filter.When(func(body object.Body) bool {
		delay = max(t.Delay(body), 0)
		return true
	}), s.named())
	return delay, err
}

// lookedAt notes whether what the timer looks at has changed: then it is not quiet, and a failure is no reason to wait or
// to give up any more.
func (k Kind) lookedAt(clock Clock, declared Declaration, s State) Clock {
	if !clock.watches(declared.Timing) || clock.View != "" && k.sameDigest(s.UID, declared, clock.View, s.Essence) {
		return clock
	}
	first := clock.View == ""
	clock.View = k.viewDigest(s.UID, declared, s.Essence)
	if first {
		return clock
	}
	clock.Quiet = s.Now
	switch {
	case clock.Outcome == record.Failed:
		clock.Outcome, clock.Attempts, clock.Started, clock.Next = "", 0, time.Time{}, s.Now
	case clock.Outcome == record.Retry && !clock.Asked:
		clock.Next = s.Now
	}
	return clock
}

// watches tells whether it matters what becomes of what the timer looks at. A wait that it has asked for is not cut short.
func (c Clock) watches(t Timing) bool {
	return t.Idle > 0 || c.Outcome == record.Retry && !c.Asked || c.Outcome == record.Failed
}

// planTimers plans the timers that are due: after all others, which are called for a change.
func (d *decision) planTimers() {
	for _, declared := range d.kind.Handlers {
		clock, has := d.plan.Clocks[declared.ID]
		if !has || clock.Outcome == record.Failed {
			continue
		}
		if due := clock.due(declared, d.state.UID); d.state.Now.Before(due) {
			d.wake(due)
			continue
		}
		run := Run{
			Declaration: declared, Reason: cause.Timer, Attempt: clock.Attempts + 1, Started: clock.Started,
			Waited:        clock.Attempts == 0 && (clock.Ticks > 0 || clock.Retries()),
			MaybeRepeated: clock.Ticks > 0 || clock.Attempts > 0 || clock.Retries() || d.state.Inherited,
		}
		if run.Started.IsZero() {
			run.Started = d.state.Now
		}
		d.plan.Runs = append(d.plan.Runs, run)
	}
}

// due is when the next run is to be made.
func (c Clock) due(declared Declaration, uid string) time.Time {
	at := c.tick(declared.Timing)
	if c.Retries() || declared.Timing.Jitter <= 0 {
		return at
	}
	const shares = 1 << 16
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(uid + "/" + declared.ID + "/" + strconv.Itoa(c.Ticks)))
	share := int64(hash.Sum32() >> 16)
	whole, rest := int64(declared.Timing.Jitter)/shares, int64(declared.Timing.Jitter)%shares // The product may be too large.
	return at.Add(time.Duration(whole*share + rest*share/shares))
}

// tick is when the next run is due, before it is put off by chance: when its time has come and there is quiet.
func (c Clock) tick(t Timing) time.Time {
	quiet := c.Quiet.Add(t.Idle)
	if t.Idle <= 0 || !quiet.After(c.Next) {
		return c.Next
	}
	if t.Sharp && !c.Origin.IsZero() && !c.Retries() {
		return after(c.Origin, t.Interval, quiet.Add(-1))
	}
	return quiet
}

// after is the first moment of a grid that is later than a time.
func after(origin time.Time, interval time.Duration, than time.Time) time.Time {
	if than.Before(origin) {
		return origin
	}
	return than.Add(interval - than.Sub(origin)%interval)
}

// Ended is an attempt that has ended. Seen is the essence that the handler was given, with its own changes.
type Ended struct {
	Run    Run
	Result Result
	Seen   object.Body
	At     time.Time
}

// FoldTimer tells how a timer stands after an attempt. Its own changes disturb no quiet, and end no wait.
func (k Kind) FoldTimer(uid string, clock Clock, ended Ended) Clock {
	run, result, now := ended.Run, ended.Result, ended.At
	if clock.Origin.IsZero() {
		clock.Origin = clock.tick(run.Timing)
	}
	clock.Outcome, clock.Asked, clock.Attempts, clock.Started = result.Outcome, result.Asked, run.Attempt, run.Started
	switch result.Outcome {
	case record.Done:
		clock.Outcome, clock.Attempts, clock.Started = "", 0, time.Time{}
		clock.Ticks++
		if clock.Next = now.Add(run.Timing.Interval); run.Timing.Sharp {
			clock.Next = after(clock.Origin, run.Timing.Interval, now)
		}
	case record.Waiting:
		clock.Attempts--
		clock.Next = now.Add(result.Delay)
	case record.Retry:
		clock.Next = now.Add(result.Delay)
	case record.Failed, record.Pending, record.Outside:
	}
	clock.View = ""
	if clock.watches(run.Timing) {
		clock.View = k.viewDigest(uid, run.Declaration, ended.Seen)
	}
	return clock
}
