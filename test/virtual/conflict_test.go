package virtual_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// merge patches the object as a user does; with subresource, that part of it.
func merge(t *testing.T, w *virtualWorld, object client.Object, subresource, text string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(text))
	if subresource != "" {
		fixture.Must(t, w.User.SubResource(subresource).Patch(t.Context(), object, patch))
		return
	}
	fixture.Must(t, w.User.Patch(t.Context(), object, patch))
}

// Two update handlers that undo each other are slowed down to one write in ten seconds. A deletion does not wait.
func TestTwoHandlersThatUndoEachOtherAreSlowedDown(t *testing.T) { //nolint:gocognit // One story, told row by row.
	const endless = 500 // So that a loop without a limit ends: virtual time does not pass in it.
	log := &fixture.Log{}
	var at []time.Time
	deleted := false
	virtually(t, log, func(op *einmal.Operator) {
		widgets := einmal.For[fixture.Widget](op)
		set := func(size int) einmal.HandlerFunc[fixture.Widget] {
			return func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				if len(at) < endless {
					at = append(at, time.Now())
					c.Object.Spec.Size = size
				}
				return nil
			}
		}
		widgets.OnUpdate("smaller", set(1), einmal.Fields("spec.size"))
		widgets.OnUpdate("larger", set(2), einmal.Fields("spec.size"))
		widgets.OnDelete("clean", func(context.Context, *einmal.Change[fixture.Widget]) error {
			deleted = true
			return nil
		})
	}, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewRedWidget("one")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		begun := time.Now()
		merge(t, w, one, "", `{"spec":{"size":5}}`)
		w.Pass(10 * time.Minute)
		soon := 0
		for _, call := range at {
			if call.Sub(begun) < time.Second {
				soon++
			}
		}
		if soon < 5 || soon > 8 {
			t.Errorf("%d calls in the first second, want about 6", soon)
		}
		if n := len(at); n < 60 || n > 75 {
			t.Errorf("%d calls in 10 minutes, want some at first and then one in ten seconds", n)
		}
		fixture.Must(t, w.User.Delete(t.Context(), one))
		w.Pass(time.Second)
		if !deleted {
			t.Error("the deletion waits")
		}
	})
	fixture.ExpectLine(t, log, "msg~conflicting writes of a field, slowing down", "object=default/one", "field=spec.size", "pause=10s")
}

// A handler and another client set one field in turn. From then on, the object is handled once in ten seconds. An object whose handler only
// follows others is not slowed down.
func TestTwoWritersOfOneFieldAreSlowedDown(t *testing.T) {
	log := &fixture.Log{}
	var contested, followed atomic.Int64
	virtually(t, log, func(op *einmal.Operator) {
		widgets := einmal.For[fixture.Widget](op)
		widgets.OnUpdate("paint", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			if c.Object.Name == "followed" {
				c.Object.Status.Phase = fmt.Sprint("call ", followed.Add(1))
				return nil
			}
			call := contested.Add(1)
			c.Object.Spec.Color = fmt.Sprint("blue-", call)
			c.Object.Status.Phase = fmt.Sprint("call ", call)
			return nil
		})
	}, func(t *testing.T, w *virtualWorld) {
		both := []*fixture.Widget{fixture.NewRedWidget("contested"), fixture.NewRedWidget("followed")}
		for _, one := range both {
			fixture.Must(t, w.User.Create(t.Context(), one))
		}
		w.Pass(time.Minute)
		for turn := range 120 {
			for _, one := range both {
				change := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"color":"red-%d"}}`, turn))
				fixture.Must(t, w.User.Patch(t.Context(), one, change, client.FieldOwner("painter")))
			}
			w.Pass(5 * time.Second)
		}
	})
	if n := followed.Load(); n != 120 {
		t.Errorf("the object without a conflict was handled %d times, want 120", n)
	}
	if n := contested.Load(); n < 60 || n > 70 {
		t.Errorf("the object with a conflict was handled %d times in 10 minutes, want some at first and then one in ten seconds", n)
	}
	fixture.ExpectLine(t, log, "msg~conflicting writes of a field, slowing down", "object=default/contested", "field=spec.color", "pause=10s")
}

// A handler that answers each edit of a user, and another that follows it, are not slowed down.
func TestHandlersThatFollowEachOtherAreNotSlowedDown(t *testing.T) {
	log := &fixture.Log{}
	followed := 0
	virtually(t, log, func(op *einmal.Operator) {
		widgets := einmal.For[fixture.Widget](op)
		widgets.OnUpdate("paint", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Spec.Color = fmt.Sprint("size ", c.Object.Spec.Size)
			return nil
		}, einmal.Fields("spec.size"))
		widgets.OnUpdate("follow", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			followed++
			c.Object.Status.Phase = c.Object.Spec.Color
			return nil
		}, einmal.Fields("spec.color"))
	}, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewRedWidget("one")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		for size := range 60 {
			merge(t, w, one, "", fmt.Sprintf(`{"spec":{"size":%d}}`, size+2))
			w.Pass(500 * time.Millisecond)
			if followed != size+1 {
				t.Fatalf("edit %d: %d calls of the handler that follows", size+1, followed)
			}
		}
	})
	if log.Count("msg~conflicting writes") > 0 {
		t.Error("a conflict is reported")
	}
}

// A field that another client keeps changing is written at once some times, and then once in ten seconds. Meanwhile the finalizer is added and
// deletions are handled at once, and edits and annotations of users within ten seconds.
func TestConflictPausesDelayNoFinalizerAndNoDeletion(t *testing.T) {
	for name, step := range map[string]struct {
		within time.Duration
		act    func(*testing.T, *virtualWorld, *fixture.Widget)
		done   func(*testing.T, *virtualWorld, *fixture.Widget, []string) bool
	}{
		"the finalizer is put back": {
			100 * time.Millisecond,
			func(t *testing.T, w *virtualWorld, one *fixture.Widget) {
				merge(t, w, one, "", `{"metadata":{"finalizers":null}}`)
			},
			func(t *testing.T, w *virtualWorld, one *fixture.Widget, _ []string) bool {
				fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
				return len(one.Finalizers) == 1
			},
		},
		"a deletion": {
			100 * time.Millisecond,
			func(t *testing.T, w *virtualWorld, one *fixture.Widget) {
				fixture.Must(t, w.User.Delete(t.Context(), one))
			},
			func(_ *testing.T, _ *virtualWorld, _ *fixture.Widget, calls []string) bool {
				return slices.Contains(calls, "clean")
			},
		},
		"an edit of the spec": {
			10 * time.Second,
			func(t *testing.T, w *virtualWorld, one *fixture.Widget) {
				merge(t, w, one, "", `{"spec":{"color":"green"}}`)
			},
			func(_ *testing.T, _ *virtualWorld, _ *fixture.Widget, calls []string) bool {
				return slices.Contains(calls, "paint green")
			},
		},
		"the annotation that asks for creation": {
			10 * time.Second,
			func(t *testing.T, w *virtualWorld, one *fixture.Widget) {
				merge(t, w, one, "", `{"metadata":{"annotations":{"`+fixture.Identity+`/recreate":"once"}}}`)
			},
			func(_ *testing.T, _ *virtualWorld, _ *fixture.Widget, calls []string) bool {
				return slices.Contains(calls, "make")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			note := func(text string) { calls = append(calls, text) }
			virtually(t, &fixture.Log{}, func(op *einmal.Operator) { declareWiped(op, note) }, func(t *testing.T, w *virtualWorld) {
				one := fixture.NewRedWidget("one")
				fixture.Must(t, w.User.Create(t.Context(), one))
				w.Pass(time.Minute)
				wipeEachSecond(t, w, one)
				calls = nil
				step.act(t, w, one)
				w.Pass(step.within)
				if !step.done(t, w, one, calls) {
					t.Errorf("it waits: %v", calls)
				}
			})
		})
	}
}

// wipeEachSecond removes the status once in each second of a minute. It expects that the status comes back some times at once, and then once
// in ten seconds.
func wipeEachSecond(t *testing.T, w *virtualWorld, one *fixture.Widget) {
	t.Helper()
	back := 0
	for range 60 {
		fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
		if one.Status.Phase == "Ready" {
			back++
		}
		merge(t, w, one, "status", `{"status":null}`)
		w.Pass(time.Second)
	}
	if back < 8 || back > 15 {
		t.Errorf("the status was back %d times in a minute, want some times at first and then once in ten seconds", back)
	}
}

// declareWiped declares handlers of an object whose status is wiped again and again.
func declareWiped(op *einmal.Operator, note func(string)) {
	widgets := einmal.For[fixture.Widget](op)
	widgets.OnCreate("make", func(context.Context, *einmal.Change[fixture.Widget]) error {
		note("make")
		return nil
	})
	widgets.OnUpdate("paint", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		note("paint " + c.Object.Spec.Color)
		return nil
	}, einmal.Fields("spec.color"))
	widgets.Reconcile("phase", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
		c.Object.Status.Phase = "Ready"
		return nil
	}, einmal.Fields("status.phase"))
	widgets.OnDelete("clean", func(context.Context, *einmal.Change[fixture.Widget]) error {
		note("clean")
		return nil
	})
}

// A record that is wiped six times within ten seconds is back within two seconds, each time.
func TestWipedRecordsAreBackWithinSeconds(t *testing.T) {
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) { declareWiped(op, func(string) {}) }, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewRedWidget("one")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		for wipe := range 5 {
			merge(t, w, one, "status", `{"status":null}`)
			w.Pass(time.Second)
			fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
			if one.Status.Phase != "Ready" {
				t.Errorf("wipe %d: the status is not back", wipe+1)
			}
			w.Pass(time.Second)
		}
		merge(t, w, one, "status", `{"status":null}`)
		merge(t, w, one, "", `{"metadata":{"finalizers":null}}`)
		w.Pass(2 * time.Second)
		fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
		if one.Status.Phase != "Ready" || len(one.Finalizers) != 1 {
			t.Errorf("2 s after the last wipe: phase %q, finalizers %v", one.Status.Phase, one.Finalizers)
		}
	})
}
