package virtual_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// servedOnly serves just one version of a definition.
func servedOnly(name string) func(*unstructured.Unstructured) {
	return func(definition *unstructured.Unstructured) {
		fixture.AddVersion(definition, name)
		versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
		for _, version := range versions {
			described, _ := version.(map[string]any)
			described["served"] = described["name"] == name
		}
		_ = unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions")
	}
}

// Scenario 83: the old version is withdrawn at the moment at which the new one comes. What was done is not done again either.
func TestAWatchMovesFromAVersionThatIsWithdrawn(t *testing.T) {
	declare := func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Name: "things"})
		every.OnCreate("make", fixture.Nothing[unstructured.Unstructured])
		every.OnUpdate("change", fixture.Nothing[unstructured.Unstructured])
		every.OnResume("greet", fixture.Nothing[unstructured.Unstructured])
		every.OnDelete("unmake", fixture.Nothing[unstructured.Unstructured])
	}
	selecting(t, declare, func(w *selectingWorld) {
		since, definition := 0, fixture.DefineThings("a.dev", "", "v1beta1")
		w.restart(func() {
			w.create(definition.DeepCopy(), fixture.NewThing("a.dev/v1beta1", "one"), fixture.NewThing("a.dev/v1beta1", "two"))
		})
		w.Pass(10 * time.Second)
		w.called(&since, "make of a.dev/v1beta1 one (create)", "make of a.dev/v1beta1 two (create)")
		w.change(definition, servedOnly("v1"))
		w.delete(fixture.NewThing("a.dev/v1", "two"))
		w.Pass(time.Minute)
		w.called(&since, "unmake of a.dev/v1 two (delete)")
		w.is("")
		w.change(fixture.NewThing("a.dev/v1", "one"), func(u *unstructured.Unstructured) { setSize(u) })
		w.Pass(time.Minute)
		w.called(&since, "change of a.dev/v1 one (update)")
	})
}

// Scenario 83: a handler is at work, and a daemon runs, when the version changes. The handler's work counts, no other process begins
// before it has ended, and there is one daemon at a time.
func TestAWatchThatMovesWaitsForHandlers(t *testing.T) {
	said := &fixture.Notes{}
	declare := func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Name: "things"})
		every.OnCreate("make", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			said.Add("make begins on %s", c.Object.GetAPIVersion())
			<-time.After(15 * time.Second)
			said.Add("make ends")
			return nil
		})
		every.OnUpdate("change", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			said.Add("change on %s", c.Object.GetAPIVersion())
			return nil
		})
		every.Daemon("attend", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			said.Add("daemon begins on %s", c.Object.GetAPIVersion())
			<-c.Stopping()
			said.Add("daemon ends")
			return nil
		}, einmal.WithoutFinalizer())
	}
	selecting(t, declare, func(w *selectingWorld) {
		definition := fixture.DefineThings("a.dev", "", "v1beta1")
		w.restart(func() { w.create(definition.DeepCopy(), fixture.NewThing("a.dev/v1beta1", "one")) })
		w.Pass(time.Second)
		said.Expect(t, "make begins on a.dev/v1beta1")
		w.change(definition, func(u *unstructured.Unstructured) { fixture.AddVersion(u, "v1") })
		w.change(fixture.NewThing("a.dev/v1", "one"), func(u *unstructured.Unstructured) { setSize(u) })
		w.Pass(time.Minute)
		said.Expect(t, "make ends", "change on a.dev/v1", "daemon begins on a.dev/v1")
		w.change(definition, func(u *unstructured.Unstructured) { fixture.AddVersion(u, "v2") })
		w.Pass(time.Minute)
		said.Expect(t, "daemon ends", "daemon begins on a.dev/v2")
		w.Stop()
		said.Expect(t, "daemon ends")
	})
}
