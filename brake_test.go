package einmal_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
)

// merge patches the object as a user does; with subresource, that part of it.
func merge(t *testing.T, w *virtualWorld, object client.Object, subresource, text string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(text))
	if subresource != "" {
		must(t, w.User.SubResource(subresource).Patch(t.Context(), object, patch))
		return
	}
	must(t, w.User.Patch(t.Context(), object, patch))
}

// Two update handlers that undo each other are slowed down from their sixth write on, from 1 s to 1 min, and named. A deletion
// does not wait.
func TestTwoHandlersThatUndoEachOtherAreSlowedDownAndNamed(t *testing.T) { //nolint:gocognit // One story, told row by row.
	const endless = 500 // So that a loop without a brake ends: virtual time does not pass in it.
	log := &syncedText{}
	var at []time.Time
	deleted := false
	virtually(t, log, func(op *einmal.Operator) {
		widgets := einmal.For[Widget](op)
		set := func(size int) einmal.HandlerFunc[Widget] {
			return func(_ context.Context, c *einmal.Change[Widget]) error {
				if len(at) < endless {
					at = append(at, time.Now())
					c.Object.Spec.Size = size
				}
				return nil
			}
		}
		widgets.OnUpdate("smaller", set(1), einmal.Fields("spec.size"))
		widgets.OnUpdate("larger", set(2), einmal.Fields("spec.size"))
		widgets.OnDelete("clean", func(context.Context, *einmal.Change[Widget]) error {
			deleted = true
			return nil
		})
	}, func(t *testing.T, w *virtualWorld) {
		one := widget("one")
		must(t, w.User.Create(t.Context(), one))
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
		if n := len(at); n < 15 || n > 30 {
			t.Errorf("%d calls in 10 minutes, want some at first and then one in each minute", n)
		}
		must(t, w.User.Delete(t.Context(), one))
		w.Pass(time.Second)
		if !deleted {
			t.Error("the deletion waits for the brake")
		}
	})
	tells(t, log, "msg~two writers keep changing the same field", "object=default/one", "field=spec.size", "writers~larger", "writers~smaller")
}

// A handler that answers each edit of a user, and another that follows it, are not slowed down.
func TestHandlersThatFollowEachOtherAreNotSlowedDown(t *testing.T) {
	log := &syncedText{}
	followed := 0
	virtually(t, log, func(op *einmal.Operator) {
		widgets := einmal.For[Widget](op)
		widgets.OnUpdate("paint", func(_ context.Context, c *einmal.Change[Widget]) error {
			c.Object.Spec.Color = fmt.Sprint("size ", c.Object.Spec.Size)
			return nil
		}, einmal.Fields("spec.size"))
		widgets.OnUpdate("follow", func(_ context.Context, c *einmal.Change[Widget]) error {
			followed++
			c.Object.Status.Phase = c.Object.Spec.Color
			return nil
		}, einmal.Fields("spec.color"))
	}, func(t *testing.T, w *virtualWorld) {
		one := widget("one")
		must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		for size := range 60 {
			merge(t, w, one, "", fmt.Sprintf(`{"spec":{"size":%d}}`, size+2))
			w.Pass(500 * time.Millisecond)
			if followed != size+1 {
				t.Fatalf("edit %d: %d calls of the handler that follows", size+1, followed)
			}
		}
	})
	if log.lines("msg~two writers") > 0 {
		t.Error("a conflict is reported")
	}
}

// While an object is paused because of a conflict in its status, everything else continues at once: the finalizer, deletions, edits and
// annotations of users. A wiped record is back within seconds at first.
func TestConflictPausesDelayNothingElse(t *testing.T) {
	for name, step := range map[string]struct {
		act  func(*testing.T, *virtualWorld, *Widget)
		done func(*testing.T, *virtualWorld, *Widget, []string) bool
	}{
		"the finalizer is put back": {
			func(t *testing.T, w *virtualWorld, one *Widget) {
				merge(t, w, one, "", `{"metadata":{"finalizers":null}}`)
			},
			func(t *testing.T, w *virtualWorld, one *Widget, _ []string) bool {
				must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
				return len(one.Finalizers) == 1
			},
		},
		"a deletion": {
			func(t *testing.T, w *virtualWorld, one *Widget) { must(t, w.User.Delete(t.Context(), one)) },
			func(_ *testing.T, _ *virtualWorld, _ *Widget, calls []string) bool {
				return slices.Contains(calls, "clean")
			},
		},
		"an edit of the spec": {
			func(t *testing.T, w *virtualWorld, one *Widget) { merge(t, w, one, "", `{"spec":{"color":"green"}}`) },
			func(_ *testing.T, _ *virtualWorld, _ *Widget, calls []string) bool {
				return slices.Contains(calls, "paint green")
			},
		},
		"the annotation that asks for creation": {
			func(t *testing.T, w *virtualWorld, one *Widget) {
				merge(t, w, one, "", `{"metadata":{"annotations":{"`+testIdentity+`/recreate":"once"}}}`)
			},
			func(_ *testing.T, _ *virtualWorld, _ *Widget, calls []string) bool {
				return slices.Contains(calls, "make")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls []string
			note := func(text string) { calls = append(calls, text) }
			virtually(t, &syncedText{}, func(op *einmal.Operator) { declareWiped(op, note) }, func(t *testing.T, w *virtualWorld) {
				one := widget("one")
				must(t, w.User.Create(t.Context(), one))
				w.Pass(time.Minute)
				for range 20 {
					merge(t, w, one, "status", `{"status":null}`)
					w.Pass(time.Second)
				}
				calls = nil
				step.act(t, w, one)
				w.Pass(100 * time.Millisecond)
				if !step.done(t, w, one, calls) {
					t.Errorf("it waits for the brake: %v", calls)
				}
			})
		})
	}
}

// declareWiped declares handlers of an object whose status is wiped again and again.
func declareWiped(op *einmal.Operator, note func(string)) {
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("make", func(context.Context, *einmal.Change[Widget]) error {
		note("make")
		return nil
	})
	widgets.OnUpdate("paint", func(_ context.Context, c *einmal.Change[Widget]) error {
		note("paint " + c.Object.Spec.Color)
		return nil
	}, einmal.Fields("spec.color"))
	widgets.Reconcile("phase", func(_ context.Context, c *einmal.Change[Widget]) error {
		c.Object.Status.Phase = "Ready"
		return nil
	}, einmal.Fields("status.phase"))
	widgets.OnDelete("clean", func(context.Context, *einmal.Change[Widget]) error {
		note("clean")
		return nil
	})
}

// A record that is wiped five times within ten seconds is back within a second, each time; later wipes in a row within some seconds.
func TestWipedRecordsAreBackWithinSeconds(t *testing.T) {
	virtually(t, &syncedText{}, func(op *einmal.Operator) { declareWiped(op, func(string) {}) }, func(t *testing.T, w *virtualWorld) {
		one := widget("one")
		must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		for wipe := range 5 {
			merge(t, w, one, "status", `{"status":null}`)
			w.Pass(time.Second)
			must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
			if one.Status.Phase != "Ready" {
				t.Errorf("wipe %d: the status is not back", wipe+1)
			}
			w.Pass(time.Second)
		}
		merge(t, w, one, "status", `{"status":null}`)
		merge(t, w, one, "", `{"metadata":{"finalizers":null}}`)
		w.Pass(2 * time.Second)
		must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
		if one.Status.Phase != "Ready" || len(one.Finalizers) != 1 {
			t.Errorf("2 s after the last wipe: phase %q, finalizers %v", one.Status.Phase, one.Finalizers)
		}
	})
}

// An edit of a status field is answered at once, also while two writers fight over the spec.
func TestConflictPausesDoNotDelayAnEditOfTheStatus(t *testing.T) {
	wanted := ""
	virtually(t, &syncedText{}, func(op *einmal.Operator) {
		widgets := einmal.For[Widget](op)
		widgets.OnUpdate("paint", func(_ context.Context, c *einmal.Change[Widget]) error {
			c.Object.Spec.Color = "blue"
			return nil
		}, einmal.Fields("spec.color"))
		widgets.OnUpdate("want", func(_ context.Context, c *einmal.Change[Widget]) error {
			wanted = c.Object.Status.Phase
			return nil
		}, einmal.Fields("status.phase"))
	}, func(t *testing.T, w *virtualWorld) {
		one := widget("one")
		must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		for range 20 {
			merge(t, w, one, "", `{"spec":{"color":"green"}}`)
			w.Pass(time.Second)
		}
		merge(t, w, one, "status", `{"status":{"phase":"rotate"}}`)
		w.Pass(100 * time.Millisecond)
		if wanted != "rotate" {
			t.Errorf("it waits for the brake: the handler saw %q", wanted)
		}
	})
}
