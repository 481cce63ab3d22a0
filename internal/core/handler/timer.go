package handler

import (
	"errors"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Timing defines when a timer runs.
type Timing struct {
	// Interval is the time from the end of a run to the start of the next one. With Sharp, the next run instead starts at the next
	// multiple of Interval after the first run.
	Interval time.Duration
	Sharp    bool
	// Idle is how long the timer's view must have been unchanged before a run, or 0.
	Idle time.Duration
	// Delay returns how long to wait before the object's first run in this process; nil means not at all. It may panic.
	Delay func(object.Body) time.Duration
}

// Clock is the state of one object's timer in this process.
type Clock struct {
	// Next is when the next run is due, unless it has to wait for Idle.
	Next time.Time
	// Origin is the start of the grid of a Sharp timer. It is zero before the first run.
	Origin time.Time
	// Ticks counts the finished runs, each with all of its attempts.
	Ticks int
	// View is the digest of the timer's view, if it is needed. Quiet is since when the view has not changed.
	View  string
	Quiet time.Time
	// Outcome is that of the last attempt, Attempts the number of attempts since Started. They are reset when a run has succeeded.
	// Asked means that the handler named the time of the next attempt.
	Outcome  record.Outcome
	Asked    bool
	Attempts int
	Started  time.Time
}

// Retries reports whether the next run does not follow from the interval, but is a retry or was requested by the handler.
func (c Clock) Retries() bool { return c.Outcome == record.Retry || c.Outcome == record.Waiting }

// updateClocks updates the clocks of all timers that match the object. Other timers have none.
func (d *decision) updateClocks() {
	d.plan.Clocks = map[string]Clock{}
	for _, declared := range d.kind.Handlers {
		if declared.Verb != cause.Timer || d.scope.outside[declared.ID] || d.state.Deleting {
			continue
		}
		clock, known := d.state.Clocks[declared.ID]
		if !known {
			delay, err := declared.Timing.delay(d.state)
			if err != nil {
				d.plan.Err = errors.Join(d.plan.Err, fmt.Errorf("compute initial delay of timer %q: %w", declared.ID, err))
				continue
			}
			clock = Clock{Next: d.state.Now.Add(delay), Quiet: d.state.Now}
		}
		d.plan.Clocks[declared.ID] = d.kind.observed(clock, declared, d.state)
	}
}

// delay returns how long the object waits for its first run.
func (t Timing) delay(s State) (time.Duration, error) {
	if t.Delay == nil {
		return 0, nil
	}
	var delay time.Duration
	_, err := filter.Test(filter.When(func(body object.Body) bool {
		delay = max(t.Delay(body), 0)
		return true
	}), s.withNames())
	return delay, err
}

// observed checks whether the timer's view has changed. If so, the idle time starts again, and a previous failure no longer delays
// or ends the timer.
func (k Kind) observed(clock Clock, declared Declaration, s State) Clock {
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

// watches reports whether a change of the timer's view matters. A delay that the handler requested is not shortened.
func (c Clock) watches(t Timing) bool {
	return t.Idle > 0 || c.Outcome == record.Retry && !c.Asked || c.Outcome == record.Failed
}

// planTimers plans the timers that are due. They run after the handlers of changes.
func (d *decision) planTimers() {
	for _, declared := range d.kind.Handlers {
		clock, has := d.plan.Clocks[declared.ID]
		if !has || clock.Outcome == record.Failed {
			continue
		}
		if due := clock.due(declared.Timing); d.state.Now.Before(due) {
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

// due returns when the next run has to start: at its time, but not before the idle time has passed.
func (c Clock) due(t Timing) time.Time {
	quiet := c.Quiet.Add(t.Idle)
	if t.Idle <= 0 || !quiet.After(c.Next) {
		return c.Next
	}
	if t.Sharp && !c.Origin.IsZero() && !c.Retries() {
		return after(c.Origin, t.Interval, quiet.Add(-1))
	}
	return quiet
}

// after returns the first moment of a grid that is later than a time.
func after(origin time.Time, interval time.Duration, than time.Time) time.Time {
	if than.Before(origin) {
		return origin
	}
	return than.Add(interval - than.Sub(origin)%interval)
}

// Ended is an attempt that has ended. Seen is the essence that the handler got, with the handler's own changes.
type Ended struct {
	Run    Run
	Result Result
	Seen   object.Body
	At     time.Time
}

// FoldTimer returns the state of a timer after an attempt. Its own changes neither restart the idle time nor end a wait.
func (k Kind) FoldTimer(uid string, clock Clock, ended Ended) Clock {
	run, result, now := ended.Run, ended.Result, ended.At
	if clock.Origin.IsZero() {
		clock.Origin = clock.due(run.Timing)
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
		if clock.Next = now.Add(result.Delay); result.Broken {
			clock.Outcome = record.Failed // It runs again when its view changes, or in another process.
		}
	case record.Failed, record.Pending, record.Outside:
	}
	clock.View = ""
	if clock.watches(run.Timing) {
		clock.View = k.viewDigest(uid, run.Declaration, ended.Seen)
	}
	return clock
}
