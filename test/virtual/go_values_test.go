package virtual_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Handlers of objects without a Go type set Go values that decoded JSON never has. They mean the same, in their object and in a child.
func TestHandlersOfUntypedObjectsMaySetGoValues(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			gadgets := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", "Gadget"))
			gadgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[unstructured.Unstructured]) error {
				c.Object.Object["metadata"].(map[string]any)["annotations"] = map[string]string{"example.com/owner": "team"}
				c.Object.Object["spec"] = map[string]any{"size": 5}
				child := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "child"}, "data": map[string]string{"size": "5"},
				}}
				return c.Apply(ctx, child)
			}, einmal.Applies(&corev1.ConfigMap{}))
			gadgets.OnCreate("check", fixture.Nothing[unstructured.Unstructured]) // It gets what the first handler has set.
			return op
		})
		w.Create(fixture.NewGadget("one", 1))
		w.Advance(time.Hour)
		gadget, child := fixture.NewGadget("one", 1), fixture.NewConfigMap("child", 0)
		size := int64(0)
		if w.Get(gadget) {
			size, _, _ = unstructured.NestedInt64(gadget.Object, "spec", "size")
		}
		if size != 5 || gadget.GetAnnotations()["example.com/owner"] != "team" || !w.Get(child) || child.Data["size"] != "5" {
			w.Errorf("the object is %v, the child has %v", gadget.Object, child.Data)
		}
		if calls := len(w.Calls()); calls != 2 {
			w.Errorf("%d calls, want one of each handler: %v", calls, w.Calls())
		}
	})
}

// A value that JSON cannot hold is a mistake of the author: no other attempt helps, and the log says what is wrong.
func TestAValueThatJSONCannotHoldIsAProgrammingError(t *testing.T) {
	log, calls := fixture.NewLog(t), 0
	virtually(t, log, func(op *einmal.Operator) {
		gadgets := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", "Gadget"))
		gadgets.OnCreate("make", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			calls++
			c.Object.Object["spec"] = map[string]any{"size": func() {}}
			return nil
		})
	}, func(t *testing.T, w *virtualWorld) {
		var gadget client.Object = fixture.NewGadget("one", 1)
		fixture.Must(t, w.User.Create(t.Context(), gadget))
		w.Pass(time.Hour)
	})
	if calls != 1 || log.Count("level=ERROR", "msg~programming error", "error~the handler changed Object, but it holds a value that JSON cannot hold") != 1 {
		t.Errorf("%d calls, and the log does not say why", calls)
	}
}
