package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// crew notes what daemons do, and that there is never more than one of an object.
type crew struct {
	fixture.Notes

	mu      sync.Mutex
	running map[string]int
	began   time.Time
}

// keep runs a daemon: it says when it begins and ends, and does what its body says in between.
func (d *crew) keep(body func(ctx context.Context, c *einmal.Change[fixture.Widget]) error) einmal.HandlerFunc[fixture.Widget] {
	return func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
		d.Add("%s begins at %s, attempt %d", c.Object.Name, d.now(), c.Attempt)
		d.count(c.Object.Name, 1)
		err := body(ctx, c)
		d.count(c.Object.Name, -1)
		if cause := context.Cause(ctx); cause != nil {
			d.Add("%s ends at %s: %v", c.Object.Name, d.now(), cause)
		} else {
			d.Add("%s ends at %s", c.Object.Name, d.now())
		}
		return err
	}
}

func (d *crew) now() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.began.IsZero() {
		d.began = time.Now()
	}
	return time.Since(d.began).Round(time.Second)
}

func (d *crew) count(name string, by int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running == nil {
		d.running = map[string]int{}
	}
	if d.running[name] += by; d.running[name] > 1 {
		d.Add("two daemons of %s at once", name)
	}
}

// crewed runs an operator of widgets with a crew.
func crewed(t *testing.T, declare func(*einmal.Kind[fixture.Widget], *crew), use func(*einmaltest.World, *crew)) {
	t.Helper()
	einmaltest.Run(t, func(w *einmaltest.World) {
		d := &crew{}
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			declare(einmal.For[fixture.Widget](op), d)
			return op
		})
		w.Advance(time.Second)
		use(w, d)
	})
}

// untilStopped is a daemon that waits until it is stopped.
func untilStopped(ctx context.Context, _ *einmal.Change[fixture.Widget]) error {
	<-ctx.Done()
	return ctx.Err()
}

// Scenarios 62 and 63: each process starts a daemon once for each object and stops it at the deletion, which waits for it. Only the finalizer is
// written.
func TestADaemonLivesAsLongAsItsObject(t *testing.T) {
	crewed(t, func(widgets *einmal.Kind[fixture.Widget], d *crew) {
		widgets.Daemon("guard", d.keep(func(ctx context.Context, _ *einmal.Change[fixture.Widget]) error {
			<-ctx.Done()
			<-time.After(20 * time.Second)
			return nil
		}))
	}, func(w *einmaltest.World, d *crew) {
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Hour)
		w.Patch(fixture.NewWidget("one"), `{"spec":{"size":2}}`)
		w.Advance(time.Hour)
		w.Restart()
		w.Advance(time.Hour)
		d.Expect(w, "one begins at 0s, attempt 1", "one ends at 2h0m20s: the operator is stopping", "one begins at 2h0m20s, attempt 1")
		w.Delete(fixture.NewWidget("one"))
		w.Advance(19 * time.Second)
		if !w.Get(fixture.NewWidget("one")) {
			w.Error("the object has gone before its daemon")
		}
		w.Advance(2 * time.Second)
		if w.Get(fixture.NewWidget("one")) {
			w.Error("the object is kept although no daemon is left")
		}
		d.Expect(w, "one ends at 3h0m40s: the object is being deleted")
		if made := w.Writes(); len(made) != 2 {
			w.Errorf("written:\n%s", strings.Join(made, "\n"))
		}
	})
}

// Scenarios 64 and 65: a daemon that does not return is asked to stop, then its context is cancelled, then it is abandoned, and the object is
// deleted. Without a time to abandon it the object stays.
func TestADaemonThatDoesNotReturn(t *testing.T) {
	for name, test := range map[string]struct {
		options []einmal.DaemonOption
		gone    time.Duration
		want    []string
	}{
		"with times": {
			[]einmal.DaemonOption{einmal.StopGrace(10 * time.Second), einmal.AbandonAfter(20 * time.Second)},
			30 * time.Second,
			[]string{"one begins at 0s, attempt 1", "told at 1m0s", "cut at 1m10s", "one ends at 11m0s: the object is being deleted"},
		},
		"for ever": {nil, 10 * time.Minute, []string{"one begins at 0s, attempt 1", "told at 1m0s", "cut at 1m0s", "one ends at 11m0s: the object is being deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			crewed(t, func(widgets *einmal.Kind[fixture.Widget], d *crew) {
				widgets.Daemon("guard", d.keep(func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
					<-c.Stopping()
					d.Add("told at %s", d.now())
					<-ctx.Done()
					d.Add("cut at %s", d.now())
					<-time.After(11*time.Minute - d.now())
					c.Object.Status.Phase = "too late"
					return nil
				}), test.options...)
			}, func(w *einmaltest.World, d *crew) {
				w.Create(fixture.NewWidget("one"))
				w.Advance(time.Minute)
				w.Delete(fixture.NewWidget("one"))
				w.Advance(test.gone - time.Second)
				if !w.Get(fixture.NewWidget("one")) {
					w.Error("the object has gone before its time")
				}
				w.Advance(2 * time.Second)
				if w.Get(fixture.NewWidget("one")) {
					w.Error("the object does not go")
				}
				w.Advance(10 * time.Minute)
				d.Expect(w, test.want...)
			})
		})
	}
}

// Scenario 66: a daemon that has returned or failed permanently is not started again before the operator restarts. The deletion of the object
// does not wait for it.
func TestADaemonThatReturnsHasEnded(t *testing.T) {
	crewed(t, func(widgets *einmal.Kind[fixture.Widget], d *crew) {
		widgets.Daemon("guard", d.keep(func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			if c.Object.Name == "one" {
				return nil
			}
			return einmal.Permanent(errors.New("never"))
		}))
	}, func(w *einmaltest.World, d *crew) {
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Second)
		w.Create(fixture.NewWidget("two"))
		w.Advance(time.Hour)
		w.Patch(fixture.NewWidget("one"), `{"spec":{"size":2}}`)
		w.Patch(fixture.NewWidget("two"), `{"spec":{"size":2}}`)
		w.Advance(time.Hour)
		d.Expect(w, "one begins at 0s, attempt 1", "one ends at 0s", "two begins at 1s, attempt 1", "two ends at 1s")
		w.Delete(fixture.NewWidget("two"))
		w.Advance(time.Second)
		if w.Get(fixture.NewWidget("two")) {
			w.Error("the object is kept although no daemon is left")
		}
		w.Restart()
		w.Advance(time.Minute)
		d.Expect(w, "one begins at 2h0m2s, attempt 1", "one ends at 2h0m2s")
	})
}

// Scenario 67: a daemon is stopped when its object no longer matches and started when it matches again, however quickly that changes: never
// before the previous one has returned.
func TestADaemonFollowsItsFilters(t *testing.T) {
	crewed(t, func(widgets *einmal.Kind[fixture.Widget], d *crew) {
		widgets.Daemon("guard", d.keep(func(ctx context.Context, _ *einmal.Change[fixture.Widget]) error {
			<-ctx.Done()
			<-time.After(10 * time.Second)
			return nil
		}), einmal.FieldMatches("spec.size", einmal.Equals(1)))
	}, func(w *einmaltest.World, d *crew) {
		size := func(n int) { w.Patch(fixture.NewWidget("one"), fmt.Sprintf(`{"spec":{"size":%d}}`, n)) }
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Minute)
		size(2)
		w.Advance(time.Minute)
		left := fixture.NewWidget("one")
		if w.Get(left); len(left.Finalizers) > 0 {
			w.Errorf("finalizers without need: %v", left.Finalizers)
		}
		size(1)
		w.Advance(time.Minute)
		for n := range 9 { // It ends with 2.
			size(2 - n%2)
			w.Advance(time.Second)
		}
		size(1)
		w.Advance(time.Minute)
		const reason = "the object no longer matches the daemon's filters"
		d.Expect(w, "one begins at 0s, attempt 1", "one ends at 1m10s: "+reason, "one begins at 2m0s, attempt 1",
			"one ends at 3m10s: "+reason, "one begins at 3m10s, attempt 1")
	})
}

// Scenario 68: after an error a daemon is started again after the delay. The changes of the failed attempt are written.
func TestADaemonIsStartedAgainAfterAnError(t *testing.T) {
	crewed(t, func(widgets *einmal.Kind[fixture.Widget], d *crew) {
		widgets.Daemon("guard", d.keep(func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Status.Phase += fmt.Sprint(c.Attempt)
			switch c.Attempt {
			case 1:
				return einmal.RetryAfter(30*time.Second, errors.New("not yet"))
			case 2:
				panic("a bug")
			}
			return untilStopped(ctx, c)
		}), einmal.Backoff(20*time.Second, time.Minute))
	}, func(w *einmaltest.World, d *crew) {
		w.Create(fixture.NewWidget("one"))
		w.Advance(10 * time.Second)
		one := fixture.NewWidget("one")
		if w.Get(one); one.Status.Phase != "1" {
			w.Errorf("after the first attempt the phase is %q", one.Status.Phase)
		}
		w.Advance(5 * time.Minute)
		w.Stop()
		if w.Get(one); one.Status.Phase != "13" { // A panic leaves half-made changes behind.
			w.Errorf("at the end the phase is %q", one.Status.Phase)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		begun := slices.DeleteFunc(slices.Clone(d.Lines), func(line string) bool { return !strings.Contains(line, "begins") })
		if len(begun) != 3 || begun[1] != "one begins at 30s, attempt 2" || !strings.HasSuffix(begun[2], "attempt 3") {
			w.Errorf("it said %q", d.Lines)
		}
	})
}

// Scenario 75: when the operator stops its daemons and timers end, and then cleanup handlers run.
func TestCleanupComesAfterDaemons(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		d := &crew{}
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			op.OnCleanup("close", func(context.Context) error { d.Add("cleanup"); return nil })
			widgets := einmal.For[fixture.Widget](op)
			widgets.Timer("tick", 10*time.Second, func(ctx context.Context, _ *einmal.Change[fixture.Widget]) error {
				err := fixture.Pause(ctx, 3*time.Second)
				d.Add("tick has ended")
				return err
			}, einmal.FixedRate())
			widgets.Daemon("guard", d.keep(func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				<-c.Stopping()
				d.Add("told")
				<-ctx.Done()
				<-time.After(time.Second)
				return nil
			}), einmal.StopGrace(5*time.Second))
			widgets.Daemon("stubborn", func(ctx context.Context, _ *einmal.Change[fixture.Widget]) error {
				<-ctx.Done()
				<-time.After(20 * time.Second)
				d.Add("at last")
				return nil
			}, einmal.AbandonAfter(9*time.Second))
			return op
		})
		w.Create(fixture.NewWidget("one"))
		w.Advance(11 * time.Second)
		w.Stop()
		w.Advance(time.Minute)
		if d.Lines = slices.DeleteFunc(d.Lines, func(line string) bool { return strings.HasPrefix(line, "one begins") }); true {
			d.Expect(w, "tick has ended", "told", "tick has ended", "one ends at 14s: the operator is stopping", "cleanup", "at last")
		}
	})
}

// Scenario 76: when an object is deleted during a gap of the watch, the next list ends its daemons and its memo.
func TestADaemonOfAVanishedObjectIsStopped(t *testing.T) {
	type memory struct{ times int }
	d := &crew{}
	lost := simulation.Fault{Kind: simulation.EventLost, At: simulation.Point{What: "widgets.test.einmal.dev", N: 2}}
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).Daemon("guard", d.keep(func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			einmal.Memo[memory](c).times++
			d.Add("memo: %d", einmal.Memo[memory](c).times)
			return untilStopped(ctx, c)
		}), einmal.WithoutFinalizer())
	}, func(t *testing.T, w *virtualWorld) {
		w.Pass(time.Second)
		if err := w.User.Create(t.Context(), fixture.NewWidget("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Second)
		if err := w.User.Delete(t.Context(), fixture.NewWidget("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Hour)
		if told := w.Events()[lost.At.What]; told < lost.At.N {
			t.Errorf("the watch has told of %d events only: none was lost", told)
		}
		if err := w.User.Create(t.Context(), fixture.NewWidget("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		w.Stop()
		if len(d.Lines) < 6 || d.Lines[1] != "memo: 1" || !strings.HasSuffix(d.Lines[2], ": the object is gone") || d.Lines[4] != "memo: 1" {
			t.Errorf("it said %q", d.Lines)
		}
	}, lost)
}

// Scenario 108 and G2b of docs/concepts/footguns.md: while a daemon takes its time, finished delete handlers are not called again. The object is
// deleted as soon as the daemon has ended.
func TestADeleteHandlerRunsOnceBesideASlowDaemon(t *testing.T) {
	crewed(t, func(widgets *einmal.Kind[fixture.Widget], d *crew) {
		widgets.OnDelete("unmake", func(context.Context, *einmal.Change[fixture.Widget]) error { d.Add("unmake"); return nil })
		widgets.Daemon("guard", d.keep(func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			<-ctx.Done()
			<-time.After(10 * time.Minute)
			c.Object.Status.Phase = "ended"
			return nil
		}))
	}, func(w *einmaltest.World, d *crew) {
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Minute)
		w.Delete(fixture.NewWidget("one"))
		w.Advance(time.Minute)
		w.Patch(fixture.NewWidget("one"), `{"spec":{"size":2}}`)
		w.Advance(9*time.Minute - time.Second)
		if !w.Get(fixture.NewWidget("one")) {
			w.Error("the object has gone before its daemon")
		}
		if w.Advance(2 * time.Second); w.Get(fixture.NewWidget("one")) {
			w.Error("the object is kept although no daemon is left")
		}
		d.Expect(w, "one begins at 0s, attempt 1", "unmake", "one ends at 11m0s: the object is being deleted")
	})
}
