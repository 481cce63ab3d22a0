package handler_test

import (
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// breaks makes the next attempts of a handler fail because of a programming error, as this process remembers it.
func (l *life) breaks(id string) {
	l.results[id] = handler.Result{Outcome: record.Retry, Delay: time.Second, Broken: true, Message: "wrong"}
	l.broken = map[string]bool{id: true}
}

// A programming error ends the attempts in this process, until the handler's view changes. The attempts do not count for the limits, but each later
// one may be a repetition.
func TestAProgrammingErrorWaitsForAnEditOrAnotherProcess(t *testing.T) {
	limits := handler.Limits{MaxAttempts: 1, Timeout: time.Minute}
	l := newLife(t, limited("make", cause.Create, limits), declared("b", cause.Update, "spec.b"))
	l.breaks("make")
	l.expect(cause.Create, "make(create, 1)")
	for range 3 {
		l.now = l.now.Add(time.Hour)
		if l.expect(cause.Create); !l.kind.Decide(l.state()).Wake.IsZero() {
			t.Error("it is to be looked at again, without a change")
		}
	}
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Create, "make(create, 1)?")
	l.expect(cause.Create)
	l.now = l.now.Add(time.Hour)
	l.restart()
	l.breaks("make")
	l.broken = nil
	l.expect(cause.Create, "make(create, 1)?")
	l.restart()
	l.succeed("make")
	l.now = l.now.Add(time.Hour)
	l.expect(cause.Create, "make(create, 1)?")
	l.expect(cause.Noop)
}

// What counts as a programming error is not final, whatever the handler says about errors.
func TestAProgrammingErrorIsNotFinal(t *testing.T) {
	broken := handler.Result{Outcome: record.Retry, Broken: true, Message: "wrong"}
	for _, limits := range []handler.Limits{{OnError: handler.Fail}, {OnError: handler.Ignore}, {MaxAttempts: 1}, {Timeout: time.Second}} {
		got := tried(limits, 7).Judge("uid", broken, begin().Add(time.Hour))
		if got.Outcome != record.Retry || !got.Broken || got.Delay == 0 || got.Message != "wrong" {
			t.Errorf("%+v: %+v", limits, got)
		}
	}
}

// A related object does not end the wait of a Reconcile with a programming error. An edit does.
func TestARelatedObjectDoesNotWakeAProgrammingError(t *testing.T) {
	l := newLife(t, declared("sync", cause.Reconcile))
	l.breaks("sync")
	l.expect(cause.Reconcile, "sync(reconcile, 1)")
	l.woken = map[string]bool{"sync": true}
	l.expect(cause.Reconcile)
	l.essence = spec("a", 2)
	l.expect(cause.Reconcile, "sync(reconcile, 1)?")
}

// An object that matches a handler with a programming error again is handled with MaybeRepeated.
func TestAProgrammingErrorBeforeTheObjectStoppedToMatchIsKnown(t *testing.T) {
	l := newLife(t, declared("make", cause.Create, "spec.color=red"))
	l.essence = colored("red", 1)
	l.breaks("make")
	l.expect(cause.Create, "make(create, 1)")
	l.essence = colored("blue", 1)
	l.pass()
	l.essence = colored("red", 1)
	l.broken = nil
	l.succeed("make")
	l.expect(cause.Update, "make(create, 2)")
}

// A timer with a programming error stops until its view changes. A daemon stops until the next process.
func TestTimersAndDaemonsStopAfterAProgrammingError(t *testing.T) {
	kind := handler.Kind{Handlers: []handler.Declaration{{ID: "tick", Verb: cause.Timer, Timing: handler.Timing{Interval: time.Minute}}}}
	broken := handler.Result{Outcome: record.Retry, Broken: true, Delay: time.Second}
	state := handler.State{UID: "uid", Essence: spec("a", 1), Now: begin()}
	plan := kind.Decide(state)
	ended := handler.Ended{Run: plan.Runs[0], Result: broken, Seen: state.Essence, At: begin()}
	state.Clocks = map[string]handler.Clock{"tick": kind.FoldTimer("uid", plan.Clocks["tick"], ended)}
	state.Now = begin().Add(time.Hour)
	if runs := kind.Decide(state).Runs; len(runs) != 0 {
		t.Errorf("the timer runs: %+v", runs)
	}
	state.Essence = spec("a", 2)
	if runs := kind.Decide(state).Runs; len(runs) != 1 {
		t.Errorf("the timer does not run after an edit: %+v", runs)
	}
	if _, again := tried(handler.Limits{}, 1).After(broken); again {
		t.Error("the daemon starts again")
	}
}
