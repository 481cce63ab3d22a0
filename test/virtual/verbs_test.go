package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Scenario 51: several changes of an object while its handlers run are one event, and every addition and deletion is delivered. A deletion is
// delivered with the last state.
func TestEventsOfABusyObjectAreNotLost(t *testing.T) {
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			widgets := einmal.For[fixture.Widget](op)
			widgets.OnEvent("watch", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				said.Add("%s with size %d", c.Reason, c.Object.Spec.Size)
				if c.Reason == einmal.WatchAdded {
					<-time.After(time.Minute) // It is virtual.
				}
				return nil
			})
			return op
		})
		w.Advance(time.Second)
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Second)
		for size := 2; size <= 5; size++ {
			w.Patch(fixture.NewWidget("one"), fmt.Sprintf(`{"spec":{"size":%d}}`, size))
			w.Advance(time.Second)
		}
		w.Delete(fixture.NewWidget("one"))
		w.Create(fixture.NewWidget("one"))
		w.Advance(10 * time.Minute)
		said.Expect(w, "added with size 1", "modified with size 5", "deleted with size 5", "added with size 1")
	})
}

// Scenario 76 in part: a deletion during a gap of the watch is delivered after the next list, with the last known state.
func TestAMissedDeletionIsDeliveredLate(t *testing.T) {
	said := &fixture.Notes{}
	lost := simulation.Fault{Kind: simulation.EventLost, At: simulation.Point{What: "widgets.test.einmal.dev", N: 3}}
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnEvent("watch", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			said.Add("%s with size %d", c.Reason, c.Object.Spec.Size)
			return nil
		})
	}, func(t *testing.T, w *virtualWorld) {
		w.Pass(time.Second)
		if err := w.User.Create(t.Context(), fixture.NewWidget("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Second)
		grown := fixture.NewWidget("one")
		if err := w.User.Patch(t.Context(), grown, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"size":2}}`))); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Second)
		if err := w.User.Delete(t.Context(), fixture.NewWidget("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		said.Expect(t, "added with size 1", "modified with size 2", "deleted with size 2")
		if told := w.Events()[lost.At.What]; told < lost.At.N {
			t.Errorf("the watch has told of %d events only: none was lost", told)
		}
	}, lost)
}

// Scenario 52: if an event handler changes its copy of the object, that is an error, and nothing is written.
func TestAnEventHandlerCannotWriteItsObject(t *testing.T) {
	log := &fixture.Log{}
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnEvent("watch", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Spec.Size = 7
			return nil
		})
	}, func(t *testing.T, w *virtualWorld) {
		if err := w.User.Create(t.Context(), fixture.NewWidget("one")); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		if made := w.Writes(); len(made) != 0 {
			t.Errorf("written: %v", made)
		}
	})
	if log.Count("error~event handler changed the object") == 0 {
		t.Errorf("it is not told:\n%s", log.String())
	}
}

// Scenarios 20 and 81: a memo is shared by the handlers of one object, and ends with it.
func TestAMemoBelongsToOneObject(t *testing.T) {
	type memory struct{ handlers []string }
	said := &fixture.Notes{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			widgets := einmal.For[fixture.Widget](op)
			remember := func(id string) einmal.HandlerFunc[fixture.Widget] {
				return func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
					memo := einmal.Memo[memory](c)
					memo.handlers = append(memo.handlers, id)
					return nil
				}
			}
			widgets.OnCreate("make", remember("make"))
			widgets.Reconcile("sync", remember("sync"))
			widgets.OnDelete("unmake", remember("unmake"))
			widgets.OnEvent("last", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				if c.Reason == einmal.WatchDeleted {
					said.Add("%s: %v", c.Object.Name, einmal.Memo[memory](c).handlers)
				}
				return nil
			})
			return op
		})
		w.Create(fixture.NewWidget("one"), fixture.NewWidget("two"))
		w.Advance(time.Minute)
		w.Delete(fixture.NewWidget("two"))
		w.Advance(time.Minute)
		said.Expect(w, "two: [make sync unmake]")
		w.Create(fixture.NewWidget("two"))
		w.Advance(time.Minute)
		w.Restart()
		w.Advance(time.Minute)
		w.Delete(fixture.NewWidget("one"), fixture.NewWidget("two"))
		w.Advance(time.Minute)
		w.Delete(fixture.NewWidget("one"), fixture.NewWidget("two"))
	})
	if len(said.Lines) != 2 || !strings.Contains(said.Lines[0], ": [sync unmake]") {
		t.Errorf("after the restart it starts with an empty memo: %q", said.Lines)
	}
}

// Ten starts of operators with reconcile and event handlers write nothing.
func TestRestartsOfReconcileAndEventHandlersWriteNothing(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowUnfinished("sync")
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			widgets := einmal.For[fixture.Widget](op)
			widgets.OnEvent("watch", fixture.Nothing[fixture.Widget])
			widgets.Reconcile("sync", func(context.Context, *einmal.Change[fixture.Widget]) error { return errors.New("never") })
			secrets := einmal.For[corev1.Secret](op)
			secrets.Reconcile("look", fixture.Nothing[corev1.Secret])
			return op
		})
		w.Create(fixture.NewWidget("one"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}})
		for range 10 {
			w.Advance(20 * time.Minute)
			w.Restart()
		}
		if made := w.Writes(); len(made) != 0 {
			w.Errorf("written:\n%s", strings.Join(made, "\n"))
		}
	})
}

// Run reports what the compiler cannot: a filter that looks at fields in a verb that cannot, impossible values, ids that are used twice.
func TestRunReportsWhatAVerbCannotDo(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[fixture.Widget](op)
	widgets.OnCreate("optional", fixture.Nothing[fixture.Widget])
	widgets.OnEvent("field", fixture.Nothing[fixture.Widget], einmal.FieldMatches("spec.size", einmal.Present()))
	widgets.OnCreate("no-items", fixture.Nothing[fixture.Widget], einmal.Concurrency(0))
	widgets.OnEvent("optional", fixture.Nothing[fixture.Widget])
	widgets.OnEvent("no-function", nil)
	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`handler "field" of Widget: field spec.size: filters of an event handler cannot use fields`,
		"handler no-items of Widget: option Concurrency: must be at least 1, got 0", `handler "optional" of Widget is declared twice`, `handler "no-function" of Widget has no function`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\nbut:\n%v", want, err)
		}
	}
}
