package explore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// lifeOfTeams is a life in and out of filters: created outside of them, entering, changing, leaving, coming back and going.
func lifeOfTeams[T any, P interface {
	*T
	client.Object
}](w *einmaltest.World, kind func(*einmal.Operator) (*einmal.Kind[T], fixture.Accessors[T]), made func(name string) client.Object) {
	outside := &fixture.Registry{}
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := fixture.NewOperator()
		declared, of := kind(op)
		ours := einmal.Labels("team", einmal.Equals("a"))
		register := func(wanted bool) einmal.HandlerFunc[T] {
			return func(_ context.Context, c *einmal.Change[T]) error { return outside.Set(p, of.Name(c.Object), wanted) }
		}
		declared.OnCreate("register", register(true), ours)
		declared.OnDelete("unregister", register(false), ours)
		einmal.OnField(declared, "size", "spec.size", func(_ context.Context, c *einmal.Change[T], _, after int) error {
			of.SetPhase(c.Object, fmt.Sprintf("size %d", after))
			return nil
		}, einmal.AlsoAtCreation())
		einmal.OnField(declared, "red", "spec.color", func(_ context.Context, c *einmal.Change[T], before, after string) error {
			P(c.Object).SetAnnotations(map[string]string{"example.com/was": before + "-" + after})
			return nil
		}, einmal.FieldChanges("spec.color", einmal.To(einmal.Equals("red"))))
		return op
	})
	entering := made("entering")
	w.Create(entering)
	w.Advance(20 * time.Second)
	w.Patch(entering, `{"metadata":{"labels":{"team":"a"}},"spec":{"color":"blue"}}`)
	w.Advance(20 * time.Second)
	w.Patch(entering, `{"spec":{"size":2,"color":"red"}}`)
	w.Advance(20 * time.Second)
	w.Patch(entering, `{"metadata":{"labels":{"team":"b"}}}`)
	w.Advance(20 * time.Second)
	w.Patch(entering, `{"metadata":{"labels":{"team":"a"}}}`)
	w.Advance(6 * time.Minute) // Out of the filter it had no finalizer: the operator has to come back before the deletion.
	w.Delete(entering)
	w.Advance(10 * time.Minute)
	w.Outcome("registered", outside.Registered())
}

// Scenarios 38, 42, 48, 49: with any fault, handlers with filters and fields end in the same state.
func TestWhateverGoesWrongFiltersEndTheSame(t *testing.T) {
	t.Run("record in the status", func(t *testing.T) {
		einmaltest.Explore(t, func(w *einmaltest.World) {
			lifeOfTeams(w, fixture.Widgets, func(name string) client.Object { return fixture.NewWidget(name) })
		})
	})
	t.Run("record in the annotation", func(t *testing.T) {
		einmaltest.Explore(t, func(w *einmaltest.World) {
			lifeOfTeams(w, fixture.Gadgets, func(name string) client.Object { return fixture.NewGadget(name, 1) })
		})
	})
}
