package virtual_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// A finished delete handler is not called again while another one is still running, also after a restart, and the object is deleted as soon as
// that one is done (scenario 108, and G2b of docs/concepts/footguns.md).
func TestADeleteHandlerThatIsDoneIsNotCalledAgain(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		busy := true
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			widgets := einmal.For[fixture.Widget](op)
			widgets.OnDelete("quick", func(context.Context, *einmal.Change[fixture.Widget]) error { return nil })
			widgets.OnDelete("slow", func(context.Context, *einmal.Change[fixture.Widget]) error {
				if busy {
					return einmal.RequeueAfter(10 * time.Second)
				}
				return nil
			})
			return op
		})
		one := &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default"}}
		w.Create(one)
		w.Advance(time.Minute)
		w.Delete(one)
		w.Advance(time.Minute)
		w.Restart()
		w.Patch(one, `{"metadata":{"labels":{"touched":"meanwhile"}}}`)
		w.Advance(time.Minute)
		busy = false
		w.Advance(11 * time.Second)
		if w.Get(one) {
			w.Error("the object is still there")
		}
		calls := map[string]int{}
		for _, call := range w.Calls() {
			if call.Outcome == "done" {
				calls[call.Handler]++
			}
		}
		if diff := cmp.Diff(map[string]int{"quick": 1, "slow": 1}, calls); diff != "" {
			w.Error(diff)
		}
	})
}

// An object that is deleted by force while its handler runs is not an error: the handler is not called again, at most one request fails, and
// nothing is left to do (scenario 19).
func TestAnObjectThatGoesWhileItsHandlerRunsIsForgotten(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowUnfinished("slow")
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			widgets := einmal.For[fixture.Widget](op)
			widgets.OnCreate("slow", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				<-time.After(10 * time.Second)
				c.Object.Status.Phase = "made"
				return errors.New("too late")
			})
			widgets.OnDelete("never", func(context.Context, *einmal.Change[fixture.Widget]) error { return nil })
			return op
		})
		one := &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default"}}
		w.Create(one)
		w.Advance(time.Second)
		w.Patch(one, `{"metadata":{"finalizers":null}}`)
		w.Delete(one)
		w.Advance(time.Hour)
		if calls := w.Calls(); len(calls) != 1 || calls[0].Handler != "slow" {
			w.Errorf("calls: %v", calls)
		}
		if writes := w.Writes(); len(writes) != 1 {
			w.Errorf("writes: %q, want the finalizer alone", writes)
		}
	})
}

// Another client edits the finalizers just before Einmal does. Einmal adds and removes its own, and no finalizer is lost (scenario 17).
func TestFinalizersOfOthersAreNotLost(t *testing.T) {
	const theirs, another = "others.example.com/hold", "another.example.com/hold"
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowDeleting()
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).OnDelete("unmake", func(context.Context, *einmal.Change[fixture.Widget]) error {
				w.Patch(&fixture.Widget{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default"}},
					`{"metadata":{"finalizers":["`+fixture.Identity+`/finalizer","`+theirs+`"]}}`)
				return nil
			})
			return op
		})
		one := &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "default"}}
		w.Create(one)
		w.Patch(one, `{"metadata":{"finalizers":["`+another+`","`+theirs+`"]}}`) // The operator has seen an object without.
		w.Advance(time.Minute)
		want := []string{another, theirs, fixture.Identity + "/finalizer"}
		if w.Get(one); !cmp.Equal(one.Finalizers, want) {
			w.Errorf("finalizers %q, want %q", one.Finalizers, want)
		}
		w.Delete(one)
		w.Advance(time.Minute)
		if there := w.Get(one); !there || !cmp.Equal(one.Finalizers, []string{theirs}) {
			w.Errorf("the object is there: %t, with finalizers %q, want theirs alone", there, one.Finalizers)
		}
	})
}
