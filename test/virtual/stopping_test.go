package virtual_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// The context of a handler ends after the shutdown timeout. What the handler returns soon after is still saved, so the next process does not
// call it again.
func TestAnOutcomeSoonAfterTheGracePeriodIsSaved(t *testing.T) {
	for name, takes := range map[string]time.Duration{
		"before its end": 20 * time.Second, "at its end": 26 * time.Second, "a second later": 27 * time.Second, "just in time": 28900 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			long := func(_ context.Context, _ *einmal.Change[fixture.Widget], ran *fixture.Trail) error {
				<-time.After(takes)
				return ran.Run("make")
			}
			stepping(t, long, func(w *einmaltest.World, ran *fixture.Trail) {
				w.Advance(time.Second)
				w.Restart()
				w.Advance(2 * time.Minute)
				expectRan(w, ran, "make")
			})
		})
	}
}

// A handler that returns because the shutdown timeout has passed has not failed: its changes are kept, and the attempt does not count.
func TestAnAttemptThatTheStopInterruptsDoesNotCount(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		ran, ended := &fixture.Trail{}, time.Duration(0)
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				began := time.Now()
				if err := phased(ctx, c, ran, "a"); err != nil || c.MaybeRepeated {
					return err
				}
				err := fixture.Pause(ctx, time.Hour)
				ended = time.Since(began)
				return err
			}, einmal.MaxAttempts(1), einmal.OnError(einmal.PolicyFail))
			return op
		})
		w.Advance(time.Second)
		w.Create(fixture.NewWidget("one"))
		w.Advance(100 * time.Millisecond) // The step is not saved yet.
		w.Restart()
		w.Advance(time.Minute)
		expectRan(w, ran, "a")
		if want := 25*time.Second + 100*time.Millisecond; ended != want {
			w.Errorf("the context ended after %s, want %s", ended, want)
		}
		calls := w.Calls()
		if last := calls[len(calls)-1]; last.Attempt != 1 || last.Outcome != "done" {
			w.Errorf("the last call is %s", last)
		}
	})
}

// Once the operator is asked to stop no handler starts, not even one that is due in the same reconciliation.
func TestNoHandlerBeginsOnceTheOperatorStops(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		ran := &fixture.Trail{}
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			widgets := einmal.For[fixture.Widget](op)
			widgets.OnCreate("first", func(ctx context.Context, _ *einmal.Change[fixture.Widget]) error {
				return errors.Join(ran.Run("first"), fixture.Pause(ctx, 10*time.Second))
			})
			widgets.OnCreate("second", func(context.Context, *einmal.Change[fixture.Widget]) error { return ran.Run("second") })
			return op
		})
		w.Advance(time.Second)
		w.Create(fixture.NewWidget("one"))
		w.Advance(5 * time.Second)
		w.Stop()
		expectRan(w, ran, "first")
		w.Restart()
		w.Advance(time.Minute)
		expectRan(w, ran, "first", "second")
	})
}
