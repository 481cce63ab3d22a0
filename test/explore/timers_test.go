package explore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// told is what another system knows of an object already.
type told struct{ size int64 }

// onTime declares a timer that tells another system the size of its object, and notes that in the status.
func onTime[T any](kind *einmal.Kind[T], of fixture.Accessors[T], p *einmaltest.Process) {
	kind.Timer("tell", time.Minute, func(_ context.Context, c *einmal.Change[T]) error {
		name, size := of.Name(c.Object), of.Size(c.Object)
		told := einmal.Memo[told](c)
		if told.size != size {
			err := p.IdempotentEffect("tell the size of "+name, func() (any, error) { return size, nil })
			if err != nil {
				return err
			}
			told.size = size
		}
		// Also where it was told before: the API server may have refused this change of the status then.
		of.SetPhase(c.Object, fmt.Sprintf("told %v", size))
		return nil
	}, einmal.FixedRate(), einmal.IdleFor(10*time.Second))
}

// lifeOnTime creates an object and changes it, and lets timers run meanwhile.
func lifeOnTime[T any](w *einmaltest.World, kind func(*einmal.Operator) (*einmal.Kind[T], fixture.Accessors[T]), one client.Object, more func(*einmal.Kind[T], fixture.Accessors[T], *einmaltest.Process)) {
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := fixture.NewOperator()
		declared, of := kind(op)
		onTime(declared, of, p)
		more(declared, of, p)
		return op
	})
	w.Create(one)
	w.Advance(90 * time.Second)
	w.Patch(one, `{"spec":{"size":2}}`)
	w.Advance(2 * time.Minute)
}

// Timers (scenarios 70 and 71): with any fault the final state is the same.
func TestWhateverGoesWrongTimersEndTheSame(t *testing.T) {
	t.Run("alone", func(t *testing.T) {
		einmaltest.Explore(t, func(w *einmaltest.World) {
			lifeOnTime(w, fixture.Widgets, fixture.NewWidget("one"), func(*einmal.Kind[fixture.Widget], fixture.Accessors[fixture.Widget], *einmaltest.Process) {})
		})
	})
	t.Run("beside handlers with a record in the annotation", func(t *testing.T) {
		einmaltest.Explore(t, func(w *einmaltest.World) {
			beside := func(kind *einmal.Kind[unstructured.Unstructured], of fixture.Accessors[unstructured.Unstructured], _ *einmaltest.Process) {
				kind.OnCreate("make", of.Configure)
				kind.OnUpdate("resize", of.Configure, einmal.Fields("spec.size"))
			}
			lifeOnTime(w, fixture.Gadgets, fixture.NewGadget("one", 1), beside)
		})
	})
}
