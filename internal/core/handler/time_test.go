package handler_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// A record stores milliseconds. A handler that asked for a time is not called earlier, and a record that is read and written again
// does not change.
func TestTheNextAttemptIsNeverEarlierThanAsked(t *testing.T) { // docs/concepts/scenarios.md, 28
	for _, outcome := range []record.Outcome{record.Retry, record.Waiting} {
		l := newLife(t, declared("make", cause.Create))
		l.now = l.now.Add(time.Nanosecond)
		l.results["make"] = handler.Result{Outcome: outcome, Delay: time.Second, Asked: true}
		l.expect(cause.Create, "make(create, 1)")
		asked := l.now.Add(time.Second)
		if next := l.record().Handlers["make"].Next; next.Before(asked) || next.Sub(asked) > time.Millisecond {
			t.Errorf("%s: next at %s, asked for %s", outcome, next, asked)
		}
		l.now = asked
		l.expect(cause.Create)
		l.now = asked.Add(time.Millisecond)
		l.succeed("make")
		if _, runs := l.pass(); len(runs) != 1 {
			t.Errorf("%s: not called when due: %v", outcome, runs)
		}
	}
}

// A process whose clock is ahead records a time that is too late. A process with a correct clock does not wait longer than the longest
// backoff. A delay that the handler itself requested may have any length.
func TestAWaitThatAWrongClockHasRecordedEnds(t *testing.T) {
	for _, test := range []struct {
		limits handler.Limits
		result handler.Result
		again  bool
	}{
		{handler.Limits{}, handler.Result{Outcome: record.Retry, Delay: time.Second}, true},
		{handler.Limits{FirstBackoff: time.Hour, LongestBackoff: 2 * time.Hour}, handler.Result{Outcome: record.Retry, Delay: time.Hour}, true},
		{handler.Limits{FirstBackoff: time.Hour, LongestBackoff: math.MaxInt64}, handler.Result{Outcome: record.Retry, Delay: time.Hour}, false},
		{handler.Limits{}, handler.Result{Outcome: record.Retry, Delay: time.Second, Asked: true}, false},
		{handler.Limits{}, handler.Result{Outcome: record.Waiting, Delay: time.Second, Asked: true}, false},
	} {
		made := declared("make", cause.Create)
		made.Limits = test.limits
		l := newLife(t, made)
		right := l.now
		l.now = right.Add(24 * time.Hour)
		l.results["make"] = test.result
		l.expect(cause.Create, "make(create, 1)")
		l.now = right.Add(5 * time.Minute)
		if _, runs := l.pass(); (len(runs) > 0) != test.again {
			t.Errorf("limits %v, result %v: after 5 minutes by the right clock it runs %v", test.limits, test.result, runs)
		}
	}
}

// The status is in the view only of handlers that name a status field.
func TestTheStatusFieldsThatHandlersLookAt(t *testing.T) {
	kind := handler.Kind{Handlers: []handler.Declaration{
		declared("all", cause.Update), declared("spec", cause.Update, "spec.a"),
		declared("phase", cause.Update, "status.phase", "spec.b"), declared("ready", cause.Create, "status.ready"),
	}}
	want := []object.Path{{"status", "phase"}, {"status", "ready"}}
	if diff := cmp.Diff(want, kind.StatusFields()); diff != "" {
		t.Error(diff)
	}
}

func TestAStatusIsNoChangeForThoseWhoDoNotNameIt(t *testing.T) {
	l := newLife(t, declared("all", cause.Update), declared("phase", cause.Update, "status.phase"))
	l.essence = object.With(l.essence, object.Path{"status", "phase"}, "Pending")
	l.expect(cause.Create)
	l.essence = object.With(l.essence, object.Path{"status", "phase"}, "Ready")
	l.expect(cause.Update, "phase(update, 1) status.phase:Pending->Ready")
	l.expect(cause.Noop)
}
