package explore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// hardLuck declares handlers that fail, each with another end.
func hardLuck(widgets *einmal.Kind[fixture.Widget], p *einmaltest.Process, outside *fixture.Registry) {
	noLuck := errors.New("no luck")
	fails := func(err error) einmal.HandlerFunc[fixture.Widget] {
		return func(context.Context, *einmal.Change[fixture.Widget]) error { return err }
	}
	widgets.OnCreate("register", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		return errors.Join(outside.Set(p, c.Object.Name, true), noLuck)
	}, einmal.Fields("metadata.labels"), einmal.MaxAttempts(4), einmal.Backoff(time.Second, time.Second))
	widgets.OnCreate("lenient", fails(noLuck), einmal.OnError(einmal.PolicyIgnore))
	widgets.OnUpdate("resize", fails(einmal.RetryAfter(10*time.Second, noLuck)), einmal.Fields("spec.size"), einmal.RetryFor(35*time.Second))
	widgets.OnUpdate("paint", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		c.Object.Status.Phase = c.Object.Spec.Color
		return nil
	}, einmal.Fields("spec.color"), einmal.FormerlyKnownAs("draw"))
	widgets.OnDelete("unregister", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		if err := outside.Set(p, c.Object.Name, false); err != nil {
			return err
		}
		return einmal.Permanent(noLuck)
	}, einmal.ReleaseOnFailure())
	widgets.OnDelete("hold", fails(einmal.Permanent(noLuck)))
}

// lifeOfHardLuck is a life in which most goes wrong by itself: attempts and time run out, a deletion is blocked, and a
// person lets the object go.
func lifeOfHardLuck(w *einmaltest.World) {
	w.AllowUnfinished() // Failures for good are what it is about.
	outside := &fixture.Registry{}
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := fixture.NewOperator()
		hardLuck(einmal.For[fixture.Widget](op), p, outside)
		return op
	})
	kept, held := fixture.NewRedWidget("kept"), fixture.NewRedWidget("held")
	w.Create(kept, held)
	w.Advance(10 * time.Minute) // Also with an operator that is down at first, all are created by then.
	w.Patch(kept, `{"spec":{"size":2,"color":"blue"}}`)
	w.Delete(held)
	w.Advance(10 * time.Minute)
	if w.Get(held) {
		w.Patch(held, `{"metadata":{"annotations":{"`+fixture.Identity+`/release":"hold"}}}`)
	}
	w.Advance(10 * time.Minute)
	w.Outcome("registered", outside.Registered())
}

// Limits, failures and their remedies survive a crash at every point. Records that are wiped while the operator is down are left out: an object
// that is deleted then too loses its delete handlers.
func TestWhateverGoesWrongHardLuckEndsTheSame(t *testing.T) {
	einmaltest.Explore(t, lifeOfHardLuck, einmaltest.Without(einmaltest.Wipes))
}

// What the explored life is compared with.
func TestALifeOfHardLuck(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		lifeOfHardLuck(w)
		calls := map[string][]string{}
		for _, call := range w.Calls() {
			calls[call.Name] = append(calls[call.Name], call.Handler+" "+call.Outcome)
		}
		begun := []string{"register retry", "lenient done", "register retry", "register retry", "register failed"}
		want := map[string][]string{
			"kept": slices.Concat(begun, []string{"resize retry", "paint done", "resize retry", "resize retry", "resize failed"}),
			"held": slices.Concat(begun, []string{"unregister failed", "hold failed"}),
		}
		if diff := cmp.Diff(want, calls); diff != "" {
			w.Error(diff)
		}
		if w.Get(fixture.NewRedWidget("held")) {
			w.Error("it was not let go")
		}
	})
}
