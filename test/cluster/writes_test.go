package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// patchStatus writes the status as a third party does.
func (w *world) patchStatus(ctx context.Context, name, patch string) error {
	return w.SubResource("status").Patch(ctx, fixture.NewUntypedWidget(name), client.RawPatch(types.MergePatchType, []byte(patch)))
}

func (w *world) foreignEdit(t *testing.T) {
	var calls atomic.Int32
	stop, _ := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("slow", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			calls.Add(1)
			c.Object.Status.Phase = "ours"
			// Between our reading and our writing another client writes other parts of the same object.
			return errors.Join(
				w.patchStatus(ctx, c.Object.Name, `{"status":{"records":{"other.example.com":"theirs"}}}`),
				w.Patch(ctx, fixture.NewUntypedWidget(c.Object.Name),
					client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"their":"label"}}}`))))
		})
	})
	w.widget(t, "busy")
	found := w.phase(t, "busy", "ours")
	theirs, _, _ := unstructured.NestedString(found.Object, "status", "records", "other.example.com")
	if theirs != "theirs" || found.GetLabels()["their"] != "label" || fixture.StatusCarrier().Record(found) == "" {
		t.Errorf("something was lost: %v", found.Object)
	}
	w.quiet(t, fixture.StatusCarrier())
	if calls.Load() != 1 {
		t.Errorf("the handler was called %d times, want once", calls.Load())
	}
	stop()
}

func (w *world) foreignRecord(t *testing.T) {
	var calls atomic.Int32
	stop, _ := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnUpdate("resize", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			calls.Add(1)
			c.Object.Status.Phase = "resized"
			return w.patchStatus(ctx, c.Object.Name, `{"status":{"records":null}}`)
		})
	})
	w.widget(t, "wiped")
	w.stored(t, "wiped", `"base"`)
	w.edit(t, fixture.StatusCarrier(), "wiped", "size", int64(2))
	found := w.phase(t, "wiped", "resized")
	if !strings.Contains(fixture.StatusCarrier().Record(found), `"size":2`) {
		t.Errorf("the outcome is not in the record: %s", fixture.StatusCarrier().Record(found))
	}
	w.quiet(t, fixture.StatusCarrier())
	if calls.Load() != 1 {
		t.Errorf("the handler was called %d times, want once", calls.Load())
	}
	stop()
}

func (w *world) refusedStatus(t *testing.T) {
	var calls atomic.Int32
	stop, log := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("bad", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			calls.Add(1)
			c.Object.Spec.Color = strings.Repeat("x", 30)
			if c.Attempt > 1 {
				c.Object.Spec.Color = "red"
			}
			return nil
		})
	})
	w.widget(t, "bad")
	cluster.Eventually(t, "the second attempt is accepted", func(ctx context.Context) error {
		found, err := w.get(ctx, fixture.StatusCarrier(), "bad")
		if color, _, _ := unstructured.NestedString(found.Object, "spec", "color"); err == nil && color != "red" {
			err = fmt.Errorf("color %q after %d calls", color, calls.Load())
		}
		return err
	})
	w.quiet(t, fixture.StatusCarrier())
	if calls.Load() != 2 {
		t.Errorf("the handler was called %d times, want 2", calls.Load())
	}
	fixture.ExpectLine(t, log, "msg=API server rejected changes of handler", "reason~spec.color")
	stop()
}

func (w *world) refusedResume(t *testing.T) {
	stop, _ := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("make", fixture.Nothing[fixture.Widget])
	})
	w.widget(t, "resumed")
	w.stored(t, "resumed", `"base"`)
	stop()
	stop, _ = w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("make", fixture.Nothing[fixture.Widget])
		widgets.OnResume("paint", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Spec.Color = strings.Repeat("x", 30)
			if c.Attempt > 1 {
				c.Object.Spec.Color, c.Object.Status.Phase = "red", "painted"
			}
			return nil
		})
	})
	w.phase(t, "resumed", "painted")
	stop()
}

func (w *world) unsavedOutcome(t *testing.T) {
	role := &rbacv1.ClusterRole{}
	if err := w.Get(t.Context(), types.NamespacedName{Name: "operator"}, role); err != nil {
		t.Fatal(err)
	}
	full := role.DeepCopy()
	role.Rules[0].Resources = []string{"widgets"}
	if err := w.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	stop, log := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("once", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			calls.Add(1)
			c.Object.Status.Phase = "done once"
			return nil
		})
	})
	w.widget(t, "unsaved")
	cluster.Until(t, "the operator says what it may not do", func() bool { return log.Count("error~forbidden") > 0 })
	cluster.Until(t, "and tries again", func() bool { return log.Count("msg~reconcile failed") >= 3 })
	full.ResourceVersion = role.ResourceVersion
	if err := w.Update(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	w.stored(t, "unsaved", `"base"`)
	w.phase(t, "unsaved", "done once")
	w.quiet(t, fixture.StatusCarrier())
	if calls.Load() != 1 {
		t.Errorf("the handler was called %d times, want once", calls.Load())
	}
	stop()
}
