package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// ticks describes a timer and how long its runs take.
type ticks struct {
	takes, interval time.Duration
	options         []einmal.TimerOption
}

// timed runs one timer of one widget, whose runs take their time, and lets something happen meanwhile. It notes when runs
// begin, from the creation on.
func timed(t *testing.T, of ticks, then func(*einmaltest.World), want ...string) {
	t.Helper()
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowUnfinished("tick") // Slow ones are under way at the end.
		var created time.Time
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).Timer("tick", of.interval, func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				said.Add("%s %s", time.Since(created).Round(time.Second), c.Reason)
				return fixture.Pause(ctx, of.takes)
			}, of.options...)
			return op
		})
		w.Advance(time.Second)
		created = time.Now()
		w.Create(fixture.NewWidget("one"))
		then(w)
		w.Stop()
		said.Expect(w, want...)
		if made := w.Writes(); len(made) != 0 {
			w.Errorf("written:\n%s", strings.Join(made, "\n"))
		}
	})
}

// Scenario 70: the interval is between the end of a run and the start of the next. With FixedRate runs start on a grid, and ticks during a run
// are skipped. Runs never overlap. Scenario 72: the initial delay applies once.
func TestTimersRunOnTime(t *testing.T) {
	fourMinutes := func(w *einmaltest.World) { w.Advance(4*time.Minute + time.Second) }
	for name, test := range map[string]struct {
		ticks
		want []string
	}{
		"plain":          {ticks{10 * time.Second, time.Minute, nil}, []string{"0s timer", "1m10s timer", "2m20s timer", "3m30s timer"}},
		"sharp":          {ticks{10 * time.Second, time.Minute, []einmal.TimerOption{einmal.FixedRate()}}, []string{"0s timer", "1m0s timer", "2m0s timer", "3m0s timer", "4m0s timer"}},
		"sharp and slow": {ticks{90 * time.Second, time.Minute, []einmal.TimerOption{einmal.FixedRate()}}, []string{"0s timer", "2m0s timer", "4m0s timer"}},
		"delayed":        {ticks{0, 2 * time.Minute, []einmal.TimerOption{einmal.InitialDelay(30 * time.Second)}}, []string{"30s timer", "2m30s timer"}},
		"delayed by a function": {ticks{0, 2 * time.Minute, []einmal.TimerOption{
			einmal.InitialDelayOf(func(of *fixture.Widget) time.Duration { return time.Duration(of.Spec.Size) * time.Minute }),
		}}, []string{"1m0s timer", "3m0s timer"}},
	} {
		t.Run(name, func(t *testing.T) { timed(t, test.ticks, fourMinutes, test.want...) })
	}
}

// Scenario 71*: the timer does not run while the fields that it watches keep changing. Changes of the status do not count, also those by timers
// of the kind: there are no other handlers here.
func TestAnIdleTimerWaitsUntilTheObjectIsUnchanged(t *testing.T) {
	options := []einmal.TimerOption{einmal.IdleFor(time.Minute)}
	timed(t, ticks{interval: time.Hour, options: options}, func(w *einmaltest.World) {
		for size := range 5 {
			w.Advance(30 * time.Second)
			w.Patch(fixture.NewWidget("one"), fmt.Sprintf(`{"spec":{"size":%d}}`, size+10))
		}
		w.Advance(3 * time.Minute) // The last change was at 2m30s.
		w.Advance(56 * time.Minute)
		for phase := range 5 {
			status := fixture.NewWidget("one")
			w.Get(status)
			status.Status.Phase = fmt.Sprint(phase)
			if err := w.Client().Status().Update(w.Context(), status); err != nil {
				w.Fatal(err)
			}
			w.Advance(30 * time.Second)
		}
		w.Advance(4 * time.Minute)
	}, "3m30s timer", "1h3m30s timer")
}

// A timer changes its object like other handlers: only the fields that it has touched are written, and nothing if there are none. It stores no
// record and no finalizer in the object.
func TestATimerWritesWhatItChanges(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).Timer("tick", time.Minute, func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				c.Object.Status.Phase = fmt.Sprintf("size %d", c.Object.Spec.Size)
				if c.Object.Spec.Size == 2 {
					return errors.New("it is written all the same")
				}
				return nil
			}, einmal.FixedRate(), einmal.OwnsStatus("phase"))
			return op
		})
		w.Create(fixture.NewWidget("one"))
		w.Advance(10*time.Minute + time.Second)
		w.Patch(fixture.NewWidget("one"), `{"spec":{"size":2}}`)
		w.Advance(time.Minute)
		written := strings.Join(w.Writes(), "\n")
		if want := "patch widgets.test.einmal.dev default/one status"; written != want+"\n"+want {
			w.Errorf("written:\n%s", written)
		}
		one := fixture.NewWidget("one")
		w.Get(one)
		if one.Status.Phase != "size 2" || len(one.Finalizers)+len(one.Annotations)+len(one.Status.Records.Records) != 0 {
			w.Errorf("the widget is %+v", one)
		}
		w.Delete(one)
		if w.Advance(time.Minute); w.Get(one) {
			w.Error("it is not deleted at once")
		}
	})
}

// Scenario 74: while the operator is stopped no timer runs; after its start timers run again. Scenario 81: a timer shares a memo with the other
// handlers of its object, but not with other objects and not with the next process.
func TestTimersBelongToAProcess(t *testing.T) {
	type memory struct{ by []string }
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			widgets := einmal.For[fixture.Widget](op)
			remember := func(id string) einmal.HandlerFunc[fixture.Widget] {
				return func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
					memo := einmal.Memo[memory](c)
					if memo.by = append(memo.by, id+" "+c.Object.Name); id == "tick" {
						said.Add("%v", memo.by)
					}
					return nil
				}
			}
			widgets.OnCreate("make", remember("make"))
			widgets.Timer("tick", 10*time.Minute, remember("tick"), einmal.Labels("timed", einmal.Present()))
			return op
		})
		one := fixture.NewWidget("one")
		one.Labels = map[string]string{"timed": "yes"}
		w.Create(one, fixture.NewWidget("two"))
		w.Advance(15 * time.Minute)
		w.Stop()
		w.Advance(time.Hour)
		said.Expect(w, "[make one tick one]", "[make one tick one tick one]")
		w.Restart()
		w.Advance(time.Minute)
		w.Patch(fixture.NewWidget("two"), `{"metadata":{"labels":{"timed":"yes"}}}`)
		w.Patch(fixture.NewWidget("one"), `{"metadata":{"labels":null}}`)
		w.Advance(25 * time.Minute)
		w.Stop()
		said.Expect(w, "[tick one]", "[tick two]", "[tick two tick two]", "[tick two tick two tick two]")
	})
}

// Ticks do not wait for unfinished handlers, and cost no extra write.
func TestATimerRunsBesideOtherHandlers(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowUnfinished("make")
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			gadgets := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", "Gadget"))
			gadgets.OnCreate("make", func(context.Context, *einmal.Change[unstructured.Unstructured]) error {
				return einmal.RetryAfter(time.Hour, errors.New("not yet"))
			})
			gadgets.Timer("tick", 10*time.Minute, fixture.Nothing[unstructured.Unstructured])
			return op
		})
		gadget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": fixture.Group + "/v1", "kind": "Gadget"}}
		gadget.SetNamespace(metav1.NamespaceDefault)
		gadget.SetName("one")
		w.Create(gadget)
		w.Advance(59 * time.Minute)
		ticks, attempts := 0, 0
		for _, made := range w.Calls() {
			if made.Handler == "tick" {
				ticks++
			} else {
				attempts++
			}
		}
		written := strings.Join(w.Writes(), "\n")
		if ticks != 6 || attempts != 1 || strings.Count(written, "gadgets") != 1 {
			w.Errorf("%d ticks, %d attempts, written:\n%s", ticks, attempts, written)
		}
	})
}

// Run reports options of timers with impossible values.
func TestRunReportsMistakesOfTimers(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[fixture.Widget](op)
	widgets.Timer("too-fast", 0, fixture.Nothing[fixture.Widget])
	widgets.Timer("idle", time.Second, fixture.Nothing[fixture.Widget], einmal.IdleFor(-time.Second))
	widgets.Timer("other-type", time.Second, fixture.Nothing[fixture.Widget], einmal.InitialDelayOf(func(*metav1.Status) time.Duration { return 0 }))
	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"handler too-fast of Widget: interval: must be at least 1ms, got 0s",
		"handler idle of Widget: option IdleFor: must not be negative, got -1s",
		"handler other-type of Widget: option InitialDelayOf: must have a function that takes a *fixture.Widget",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\nbut:\n%v", want, err)
		}
	}
}
