package virtual_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// A daemon takes a while to stop after its object was deleted. What it changed last is not written to a new object with the same name.
func TestTheLastChangesOfADaemonDoNotReachANewObjectOfTheSameName(t *testing.T) {
	crewed(t, func(widgets *einmal.Kind[fixture.Widget], d *crew) {
		widgets.Daemon("guard", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			uid := c.Object.UID
			<-ctx.Done()
			if d.Add("stopped"); c.Object.Spec.Size == 1 {
				<-time.After(30 * time.Second)
				c.Object.Status.Phase = "last words of " + string(uid)
			}
			return nil
		}, einmal.WithoutFinalizer())
	}, func(w *einmaltest.World, d *crew) {
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Minute)
		w.Delete(fixture.NewWidget("one"))
		again := fixture.NewWidget("one")
		again.Spec.Size = 2
		w.Create(again)
		w.Advance(10 * time.Second)
		d.Expect(w, "stopped")
		w.Advance(time.Minute)
		if w.Get(again); again.Status.Phase != "" {
			w.Errorf("the new object has the phase %q", again.Status.Phase)
		}
	})
}

// The watch misses that an object is deleted and created again. The new object waits for the worker when the process dies. It is a new object
// for the next process, too.
func TestAnObjectThatIsReplacedInAGapOfTheWatchIsNotLost(t *testing.T) {
	lost := simulation.Fault{Kind: simulation.EventLost, At: simulation.Point{What: "widgets.test.einmal.dev", N: 3}}
	j := &fixture.Journal{}
	virtuallyMade(t, fixture.NewLog(t), func() simulation.Operator {
		op := oneWorker(t)
		widgets := einmal.For[fixture.Widget](op)
		widgets.OnCreate("quick", noted(j, "quick", nil))
		widgets.OnCreate("slow", noted(j, "slow", func(of *fixture.Widget) time.Duration {
			return map[string]time.Duration{"busy": 15 * time.Minute}[of.Name]
		}))
		return op
	}, func(t *testing.T, w *virtualWorld) {
		w.Pass(time.Minute)
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("waits")))
		w.Pass(time.Minute)
		j.Called(t, "waits", "quick (create, attempt 1)", "slow (create, attempt 1)")
		fixture.Must(t, w.User.Delete(t.Context(), fixture.NewWidget("waits")))
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("waits")))
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewWidget("busy")))
		w.Pass(13 * time.Minute)
		j.Called(t, "busy", "quick (create, attempt 1)", "slow (create, attempt 1)")
		w.Kill()
		w.start()
		w.Pass(30 * time.Minute)
		const once = "quick (create, attempt 1), slow (create, attempt 1)"
		got := strings.ReplaceAll(strings.Join(j.Of("waits"), ", "), " maybe repeated", "")
		if got != once+", "+once {
			t.Errorf("handlers ran %q, want each for both objects", got)
		}
	}, lost)
}
