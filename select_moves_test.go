package einmal_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
)

// servedOnly serves just one version of a definition.
func servedOnly(name string) func(*unstructured.Unstructured) {
	return func(definition *unstructured.Unstructured) {
		addVersion(definition, name)
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
		every.OnCreate("make", nothing[unstructured.Unstructured])
		every.OnUpdate("change", nothing[unstructured.Unstructured])
		every.OnResume("greet", nothing[unstructured.Unstructured])
		every.OnDelete("unmake", nothing[unstructured.Unstructured])
	}
	selecting(t, declare, func(w *selectingWorld) {
		since, definition := 0, definitionOf("a.dev", "", "v1beta1")
		w.restart(func() {
			w.create(definition.DeepCopy(), thingOf("a.dev/v1beta1", "one"), thingOf("a.dev/v1beta1", "two"))
		})
		w.Pass(10 * time.Second)
		w.called(&since, "make of a.dev/v1beta1 one (create)", "make of a.dev/v1beta1 two (create)")
		w.change(definition, servedOnly("v1"))
		w.delete(thingOf("a.dev/v1", "two"))
		w.Pass(time.Minute)
		w.called(&since, "unmake of a.dev/v1 two (delete)")
		w.is("")
		w.change(thingOf("a.dev/v1", "one"), func(u *unstructured.Unstructured) { setSize(u) })
		w.Pass(time.Minute)
		w.called(&since, "change of a.dev/v1 one (update)")
	})
}

// Scenario 83: a handler is at work, and a daemon runs, when the version changes. The handler's work counts, no other process begins
// before it has ended, and there is one daemon at a time.
func TestAWatchThatMovesWaitsForHandlers(t *testing.T) {
	said := &notes{}
	declare := func(op *einmal.Operator) {
		every := einmal.ForEvery(op, einmal.Selector{Name: "things"})
		every.OnCreate("make", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			said.add("make begins on %s", c.Object.GetAPIVersion())
			<-time.After(15 * time.Second)
			said.add("make ends")
			return nil
		})
		every.OnUpdate("change", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			said.add("change on %s", c.Object.GetAPIVersion())
			return nil
		})
		every.Daemon("attend", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			said.add("daemon begins on %s", c.Object.GetAPIVersion())
			<-c.Stopping()
			said.add("daemon ends")
			return nil
		}, einmal.WithoutFinalizer())
	}
	selecting(t, declare, func(w *selectingWorld) {
		definition := definitionOf("a.dev", "", "v1beta1")
		w.restart(func() { w.create(definition.DeepCopy(), thingOf("a.dev/v1beta1", "one")) })
		w.Pass(time.Second)
		said.expect(t, "make begins on a.dev/v1beta1")
		w.change(definition, func(u *unstructured.Unstructured) { addVersion(u, "v1") })
		w.change(thingOf("a.dev/v1", "one"), func(u *unstructured.Unstructured) { setSize(u) })
		w.Pass(time.Minute)
		said.expect(t, "make ends", "change on a.dev/v1", "daemon begins on a.dev/v1")
		w.change(definition, func(u *unstructured.Unstructured) { addVersion(u, "v2") })
		w.Pass(time.Minute)
		said.expect(t, "daemon ends", "daemon begins on a.dev/v2")
		w.Stop()
		said.expect(t, "daemon ends")
	})
}
