package handler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// clockwork plays a timer of one object. Each run takes its time and ends with the given result.
type clockwork struct {
	tb      testing.TB
	kind    handler.Kind
	state   handler.State
	results []handler.Result
	takes   []time.Duration
	busy    time.Duration // how late the operator starts a run
}

func newClockwork(tb testing.TB, declared handler.Declaration) *clockwork {
	tb.Helper()
	declared.ID, declared.Verb = "tick", cause.Timer
	return &clockwork{
		tb: tb, kind: handler.Kind{Handlers: []handler.Declaration{declared}},
		state: handler.State{UID: "uid", Now: begin(), Essence: object.Body{"spec": object.Body{"size": int64(1)}}},
	}
}

// next advances to the next run, makes it, and returns when it started, or "never" if there is none.
func (c *clockwork) next() string {
	for range 10 {
		plan := c.kind.Decide(c.state)
		c.state.Clocks = plan.Clocks
		if len(plan.Runs) == 0 {
			if plan.Wake.IsZero() {
				return "never"
			}
			if !plan.Wake.After(c.state.Now) {
				c.tb.Fatalf("at %s the timer wakes at %s", c.state.Now, plan.Wake)
			}
			c.state.Now = plan.Wake.Add(c.busy)
			continue
		}
		began := c.state.Now.Sub(begin())
		c.run(plan.Runs[0])
		return began.String()
	}
	c.tb.Fatal("the timer wakes without running")
	return ""
}

func (c *clockwork) run(run handler.Run) {
	result := handler.Result{Outcome: record.Done}
	if len(c.takes) > 0 {
		c.state.Now, c.takes = c.state.Now.Add(c.takes[0]), c.takes[1:]
	}
	if len(c.results) > 0 {
		result, c.results = c.results[0], c.results[1:]
	}
	result = run.Judge(c.state.UID, result, c.state.Now)
	c.state.Clocks[run.ID] = c.kind.FoldTimer(c.state.UID, c.state.Clocks[run.ID], handler.Ended{
		Run: run, Result: result, Seen: c.state.Essence, At: c.state.Now,
	})
}

func (c *clockwork) expect(want ...string) {
	c.tb.Helper()
	var got []string
	for range want {
		got = append(got, c.next())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.tb.Error(diff)
	}
}

const (
	minute = time.Minute
	second = time.Second
)

// Scenarios 70, 72 and 73 (docs/concepts/scenarios.md): when a timer runs, one rule each.
func TestWhenATimerRuns(t *testing.T) {
	failed := handler.Result{Outcome: record.Retry}
	asked := handler.Result{Outcome: record.Retry, Delay: 7 * second, Asked: true}
	waits := handler.Result{Outcome: record.Waiting, Delay: 7 * second, Asked: true}
	never := handler.Result{Outcome: record.Failed}
	done := handler.Result{Outcome: record.Done}
	constant := handler.Limits{FirstBackoff: 10 * second, LongestBackoff: 10 * second}
	delay := func(d time.Duration) func(object.Body) time.Duration {
		return func(object.Body) time.Duration { return d }
	}
	for _, test := range []struct {
		name    string
		timing  handler.Timing
		limits  handler.Limits
		takes   []time.Duration
		results []handler.Result
		busy    time.Duration
		want    []string
	}{
		{name: "at once, and then each minute", timing: handler.Timing{Interval: minute}, want: []string{"0s", "1m0s", "2m0s"}},
		{
			name: "the interval starts at the end of a run", timing: handler.Timing{Interval: minute},
			takes: []time.Duration{10 * second, 90 * second}, want: []string{"0s", "1m10s", "3m40s", "4m40s"},
		},
		{
			name: "sharp, on the grid", timing: handler.Timing{Interval: minute, Sharp: true},
			takes: []time.Duration{10 * second, 50 * second}, want: []string{"0s", "1m0s", "2m0s", "3m0s"},
		},
		{
			name: "sharp, missed runs are skipped", timing: handler.Timing{Interval: minute, Sharp: true},
			takes: []time.Duration{0, 150 * second, minute}, want: []string{"0s", "1m0s", "4m0s", "6m0s"},
		},
		{
			name: "sharp, delays do not accumulate", timing: handler.Timing{Interval: minute, Sharp: true},
			busy: 3 * second, want: []string{"0s", "1m3s", "2m3s", "3m3s"},
		},
		{name: "not sharp, delays accumulate", timing: handler.Timing{Interval: minute}, busy: 3 * second, want: []string{"0s", "1m3s", "2m6s"}},
		{name: "delayed", timing: handler.Timing{Interval: minute, Delay: delay(5 * second)}, want: []string{"5s", "1m5s"}},
		{name: "delayed and sharp", timing: handler.Timing{Interval: minute, Sharp: true, Delay: delay(5 * second)}, takes: []time.Duration{second}, want: []string{"5s", "1m5s"}},
		{name: "a negative delay", timing: handler.Timing{Interval: minute, Delay: delay(-second)}, want: []string{"0s", "1m0s"}},
		{name: "idle from the beginning", timing: handler.Timing{Interval: minute, Idle: 20 * second}, want: []string{"20s", "1m20s"}},
		{
			name: "a failure is retried before the interval ends", timing: handler.Timing{Interval: minute},
			results: []handler.Result{asked, asked, done}, want: []string{"0s", "7s", "14s", "1m14s"},
		},
		{
			name: "sharp, after a failure back to the grid", timing: handler.Timing{Interval: minute, Sharp: true},
			results: []handler.Result{asked, done}, want: []string{"0s", "7s", "1m0s"},
		},
		{name: "it asks for another time", timing: handler.Timing{Interval: minute}, results: []handler.Result{waits, done}, want: []string{"0s", "7s", "1m7s"}},
		{name: "it fails permanently", timing: handler.Timing{Interval: minute}, results: []handler.Result{done, never}, want: []string{"0s", "1m0s", "never"}},
		{
			name: "attempts end", timing: handler.Timing{Interval: minute}, limits: handler.Limits{MaxAttempts: 2},
			results: []handler.Result{asked, done, asked, asked}, want: []string{"0s", "7s", "1m7s", "1m14s", "never"},
		},
		{
			name: "the time for attempts ends", timing: handler.Timing{Interval: minute}, limits: handler.Limits{Timeout: 10 * second},
			results: []handler.Result{asked, asked}, want: []string{"0s", "7s", "never"},
		},
		{
			name: "errors are ignored", timing: handler.Timing{Interval: minute}, limits: handler.Limits{OnError: handler.Ignore},
			results: []handler.Result{failed}, want: []string{"0s", "1m0s"},
		},
		{name: "errors are final", timing: handler.Timing{Interval: minute}, limits: handler.Limits{OnError: handler.Fail}, results: []handler.Result{failed}, want: []string{"0s", "never"}},
		{name: "the backoff is shorter than the interval", timing: handler.Timing{Interval: minute, Idle: second}, limits: constant, results: []handler.Result{asked}, want: []string{"1s", "8s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newClockwork(t, handler.Declaration{Timing: test.timing, Limits: test.limits})
			c.takes, c.results, c.busy = test.takes, test.results, test.busy
			c.expect(test.want...)
		})
	}
}

// Scenario 71 (docs/concepts/scenarios.md) and G9 (docs/concepts/footguns.md): a change of the timer's view delays the next run. Other
// changes and its own changes do not.
func TestATimerWaitsForQuiet(t *testing.T) {
	for _, test := range []struct {
		name   string
		timing handler.Timing
		fields []object.Path
		change object.Path
		want   []string
	}{
		{"of the whole", handler.Timing{Interval: minute, Idle: 40 * second}, nil, object.Path{"spec", "size"}, []string{"1m55s", "2m55s"}},
		{"of its field", handler.Timing{Interval: minute, Idle: 40 * second}, []object.Path{{"spec", "size"}}, object.Path{"spec", "size"}, []string{"1m55s", "2m55s"}},
		{"of another field", handler.Timing{Interval: minute, Idle: 40 * second}, []object.Path{{"spec", "size"}}, object.Path{"spec", "color"}, []string{"1m40s", "2m40s"}},
		{"within the interval", handler.Timing{Interval: minute, Idle: 10 * second}, nil, object.Path{"spec", "size"}, []string{"1m25s", "2m25s"}},
		{"sharp", handler.Timing{Interval: minute, Idle: 40 * second, Sharp: true}, nil, object.Path{"spec", "size"}, []string{"2m40s", "3m40s"}},
		{"not idle", handler.Timing{Interval: minute}, nil, object.Path{"spec", "size"}, []string{"1m0s", "2m0s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newClockwork(t, handler.Declaration{Timing: test.timing, Fields: test.fields})
			c.next() // After the first idle time.
			for _, at := range []time.Duration{50 * second, 60 * second, 75 * second} {
				if at = begin().Add(at).Sub(c.state.Now); at < 0 || test.name == "not idle" {
					continue
				}
				c.state.Now = c.state.Now.Add(at)
				c.state.Essence = object.With(c.state.Essence, test.change, c.state.Now.String())
				plan := c.kind.Decide(c.state)
				if c.state.Clocks = plan.Clocks; len(plan.Runs) > 0 {
					t.Fatalf("it runs at %s", c.state.Now)
				}
			}
			c.expect(test.want...)
		})
	}
}

// When the timer's view changes, a failure neither delays nor ends the timer any more. A delay that the handler requested stays.
func TestAnEditWakesATimer(t *testing.T) {
	for _, test := range []struct {
		name   string
		result handler.Result
		want   []string
	}{
		{"from its backoff", handler.Result{Outcome: record.Retry}, []string{"0s", "5s"}},
		{"after a permanent failure", handler.Result{Outcome: record.Failed}, []string{"0s", "5s"}},
		{"not from a delay that it requested", handler.Result{Outcome: record.Retry, Delay: 30 * second, Asked: true}, []string{"0s", "30s"}},
		{"not from its interval", handler.Result{Outcome: record.Done}, []string{"0s", "1m0s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			slow := handler.Limits{FirstBackoff: time.Hour, LongestBackoff: time.Hour}
			c := newClockwork(t, handler.Declaration{Timing: handler.Timing{Interval: minute}, Limits: slow})
			c.results = []handler.Result{test.result}
			got := []string{c.next()}
			c.state.Now = begin().Add(5 * second)
			c.state.Essence = object.With(c.state.Essence, object.Path{"spec", "size"}, int64(2))
			if got = append(got, c.next()); !cmp.Equal(test.want, got) {
				t.Errorf("it ran at %v, want %v", got, test.want)
			}
		})
	}
}

// A timer has no clock and does not run while the object does not match it or is being deleted. It starts from the beginning when the
// object matches again.
func TestATimerIsOnlyForSomeObjects(t *testing.T) {
	c := newClockwork(t, handler.Declaration{
		Timing: handler.Timing{Interval: minute, Delay: func(object.Body) time.Duration { return 5 * second }},
		Scope:  hasSize(1),
	})
	c.expect("5s")
	c.state.Essence = object.With(c.state.Essence, object.Path{"spec", "size"}, int64(2))
	c.expect("never")
	c.state.Essence = object.With(c.state.Essence, object.Path{"spec", "size"}, int64(1))
	c.expect("10s")
	c.state.Deleting = true
	c.expect("never")
}

// A failure to compute the initial delay is reported, and the delay is computed again later.
func TestAnInitialDelayThatPanicsIsTold(t *testing.T) {
	c := newClockwork(t, handler.Declaration{Timing: handler.Timing{Interval: minute, Delay: func(object.Body) time.Duration { panic("a bug") }}})
	if plan := c.kind.Decide(c.state); plan.Err == nil || len(plan.Clocks) != 0 {
		t.Errorf("the failure is not reported: %+v", plan)
	}
}

// Timers need no record and no finalizer, whatever they do.
func TestATimerIsNotRecorded(t *testing.T) {
	c := newClockwork(t, handler.Declaration{Timing: handler.Timing{Interval: minute}})
	plan := c.kind.Decide(c.state)
	if c.kind.Recorded() || !plan.Unrecorded || plan.Learns() || plan.Finalizer != handler.Keep {
		t.Errorf("recorded %v, plan %+v", c.kind.Recorded(), plan)
	}
	if c.state.Deleting = true; c.kind.Decide(c.state).Cause != cause.Free {
		t.Error("a finalizer is set")
	}
}

// hasSize returns a filter for objects with a size.
func hasSize(size int64) filter.Filter {
	return filter.When(func(body object.Body) bool {
		found, _ := object.Get(body, "spec", "size")
		return found == size
	})
}
