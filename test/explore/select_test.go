package explore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Scenarios 82 and 83: with any fault, objects of kinds that appear and change their version end in the same state, and nothing is done twice.
func TestWhateverGoesWrongChosenKindsEndTheSame(t *testing.T) {
	definition := fixture.DefineThings("a.dev", "categories: [tests]", "v1beta1")
	einmaltest.Explore(t, func(w *einmaltest.World) {
		outside := &fixture.Registry{}
		w.Start(func(p *einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			every := einmal.ForEvery(op, einmal.Selector{Category: "tests"})
			every.OnCreate("register", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
				return outside.Set(p, c.Object.GetName(), true)
			})
			every.OnUpdate("see", fixture.Nothing[unstructured.Unstructured])
			every.Reconcile("resize", func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
				size, _, _ := unstructured.NestedInt64(c.Object.Object, "spec", "size")
				config := &corev1.ConfigMap{Data: map[string]string{"size": fmt.Sprint(size)}}
				config.Name = c.Object.GetName()
				return c.Apply(ctx, config)
			}, einmal.Fields("spec.size"))
			every.OnDelete("unregister", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
				return outside.Set(p, c.Object.GetName(), false)
			})
			return op
		})
		w.Create(definition.DeepCopy())
		w.Create(fixture.NewThing("a.dev/v1beta1", "one"), fixture.NewThing("a.dev/v1beta1", "two"))
		w.Advance(15 * time.Minute)
		found := definition.DeepCopy()
		w.Get(found)
		fixture.AddVersion(found, "v1")
		if err := w.Client().Update(w.Context(), found); err != nil {
			w.Fatal(err)
		}
		w.Advance(15 * time.Minute)
		w.Patch(fixture.NewThing("a.dev/v1", "one"), `{"spec":{"size":2}}`)
		w.Advance(15 * time.Minute) // What is deleted just when its finalizer is wiped is gone unseen.
		w.Delete(fixture.NewThing("a.dev/v1", "two"))
		w.Advance(15 * time.Minute)
		w.Outcome("registered", outside.Registered())
	})
}
