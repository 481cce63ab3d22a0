package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// TestLostRecordsOnARealControlPlane shows what happens to objects whose record is wiped, copied or not written yet.
func TestLostRecordsOnARealControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowState(t)
	for _, use := range fixture.Carriers() {
		t.Run("record in the "+use.Name, func(t *testing.T) {
			t.Run("wiped while running: put back, nothing runs", func(t *testing.T) { w.wipedWhileRunning(t, use) })
			t.Run("wiped while down: lost, not created; the way out works", func(t *testing.T) { w.wipedWhileDown(t, use) })
			t.Run("a re-apply after lost state creates nothing: replaced while down", func(t *testing.T) { w.replacedWhileDown(t, use) })
			t.Run("without a watermark it may be a repetition", func(t *testing.T) { w.wipedWithoutWatermark(t, use) })
			t.Run("a restored manifest is a new object", func(t *testing.T) { w.restored(t, use) })
		})
	}
	t.Run("a child that the operator made and handles is created", w.handledChild)
}

// allowState gives the operators what they need beyond their own kinds: a ConfigMap for watermarks, and events.
func (w *world) allowState(t *testing.T) {
	t.Helper()
	w.account = w.Account(t, "stateful",
		rbacv1.PolicyRule{
			APIGroups: []string{fixture.Group}, Resources: []string{"widgets", "widgets/status", "gadgets", "gadgets/status"},
			Verbs: []string{"get", "list", "watch", "patch", "create"},
		},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
}

// stateful runs an operator that keeps watermarks.
func (w *world) stateful(t *testing.T, use fixture.Carrier, plan fixture.Plan) (stop func(), log *fixture.Log) {
	t.Helper()
	log = fixture.NewLog(t)
	op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.StateNamespace("default"),
		einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	use.Declare(op, plan)
	return w.run(t, op, w.account), log
}

// watermark sets the watermark of the carrier's kind, as the operator does after the clocks' margin; "" removes it.
func (w *world) watermark(t *testing.T, use fixture.Carrier, at string) {
	t.Helper()
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fixture.Identity, Namespace: "default"}}
	if err := w.Delete(t.Context(), kept); err != nil && !strings.Contains(err.Error(), "not found") {
		t.Fatal(err)
	}
	if at == "" {
		return
	}
	kept.Data = map[string]string{use.Resource + "." + fixture.Group: at}
	if err := w.Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
}

func now() string { return time.Now().UTC().Add(time.Second).Format(time.RFC3339) }

// wipe removes the record, and nothing else, as a person would.
func (w *world) wipe(t *testing.T, use fixture.Carrier, name string) {
	t.Helper()
	if use.Name == "annotation" {
		w.Kubectl(t, "", "annotate", use.Resource, name, fixture.Identity+"/record-")
		return
	}
	w.Kubectl(t, "", "patch", use.Resource, name, "--subresource=status", "--type=merge", "-p", `{"status":{"records":null}}`)
}

func (w *world) wipedWhileRunning(t *testing.T, use fixture.Carrier) {
	j := &fixture.Journal{}
	stop, _ := w.stateful(t, use, fixture.Plan{Journal: j})
	w.create(t, use, "wiped")
	w.called(t, use, j, "wiped", "make (create, attempt 1)")
	before, err := w.get(t.Context(), use, "wiped")
	if err != nil {
		t.Fatal(err)
	}
	w.wipe(t, use, "wiped")
	cluster.Eventually(t, "the record is back", func(ctx context.Context) error {
		found, err := w.get(ctx, use, "wiped")
		if err == nil && use.Record(found) != use.Record(before) {
			err = fmt.Errorf("it is %q", use.Record(found))
		}
		return err
	})
	w.called(t, use, j, "wiped", "make (create, attempt 1)")
	stop()
	w.delete(t, use, "wiped")
}

func (w *world) wipedWhileDown(t *testing.T, use fixture.Carrier) {
	j := &fixture.Journal{}
	stop, _ := w.stateful(t, use, fixture.Plan{Journal: j, OnResume: true})
	w.create(t, use, "lost")
	w.called(t, use, j, "lost", "make (create, attempt 1)")
	stop()
	w.Kubectl(t, "", "patch", use.Resource, "lost", "--subresource=status", "--type=merge", "-p",
		`{"status":{"conditions":[{"type":"Theirs","status":"True"}]}}`)
	w.wipe(t, use, "lost")
	w.watermark(t, use, now())
	stop, log := w.stateful(t, use, fixture.Plan{Journal: j, OnResume: true})
	w.called(t, use, j, "lost", "make (create, attempt 1)", "greet (resume, attempt 1)")
	if log.Count("msg~record lost while the operator was down") == 0 {
		t.Error("the log does not warn")
	}
	cluster.Eventually(t, "an event names the way out", func(context.Context) error {
		if events := w.Kubectl(t, "", "get", "events"); !strings.Contains(events, fixture.Identity+"/recreate") {
			return errors.New(events)
		}
		return nil
	})
	w.edit(t, use, "lost", "size", int64(2))
	want := []string{"make (create, attempt 1)", "greet (resume, attempt 1)", "resize (update, attempt 1)"}
	w.called(t, use, j, "lost", want...)
	w.lostIs(t, use, "True")
	w.Kubectl(t, "", "annotate", use.Resource, "lost", fixture.Identity+"/recreate=yes-1")
	want = append(want, "make (create, attempt 1)")
	w.called(t, use, j, "lost", want...)
	w.lostIs(t, use, "False")
	stop()
	stop, _ = w.stateful(t, use, fixture.Plan{Journal: j})
	w.Kubectl(t, "", "annotate", "--overwrite", use.Resource, "lost", fixture.Identity+"/recreate=yes-1")
	w.called(t, use, j, "lost", want...)
	stop()
	w.delete(t, use, "lost")
}

// lostIs checks the condition. The condition of another client beside it must stay.
func (w *world) lostIs(t *testing.T, use fixture.Carrier, want string) {
	t.Helper()
	const path = `jsonpath={.status.conditions[?(@.type=="StateLost")].status} {.status.conditions[?(@.type=="Theirs")].status}`
	if got := w.Kubectl(t, "", "get", use.Resource, "lost", "-o", path); got != want+" True" {
		t.Errorf("conditions StateLost and Theirs are %q, want %q and True", got, want)
	}
}

func (w *world) replacedWhileDown(t *testing.T, use fixture.Carrier) {
	j := &fixture.Journal{}
	stop, _ := w.stateful(t, use, fixture.Plan{Journal: j})
	w.create(t, use, "replaced")
	w.called(t, use, j, "replaced", "make (create, attempt 1)")
	stop()
	w.Kubectl(t, use.Manifest("replaced", 1), "replace", "-f", "-")
	w.watermark(t, use, now())
	// Beside the fresh record a condition is written, which is a write of its own where the record is in an annotation.
	w.spend(t, use, "start after a replace while down", use.Writes(0, 2), func() {
		stop, log := w.stateful(t, use, fixture.Plan{Journal: j})
		w.called(t, use, j, "replaced", "make (create, attempt 1)")
		if lost := log.Count("msg~record lost") > 0; lost != (use.Name == "annotation") {
			t.Errorf("told of a loss: %t", lost)
		}
		stop()
	})
	w.delete(t, use, "replaced")
}

func (w *world) wipedWithoutWatermark(t *testing.T, use fixture.Carrier) {
	w.watermark(t, use, "")
	j := &fixture.Journal{}
	stop, _ := w.stateful(t, use, fixture.Plan{Journal: j})
	w.create(t, use, "unknown")
	w.called(t, use, j, "unknown", "make (create, attempt 1)")
	stop()
	w.wipe(t, use, "unknown")
	stop, _ = w.stateful(t, use, fixture.Plan{Journal: j, Repeated: true})
	w.called(t, use, j, "unknown", "make (create, attempt 1)", "make (create, attempt 1) maybe repeated")
	stop()
	w.delete(t, use, "unknown")
}

func (w *world) restored(t *testing.T, use fixture.Carrier) {
	j := &fixture.Journal{}
	stop, _ := w.stateful(t, use, fixture.Plan{Journal: j})
	w.create(t, use, "backup")
	w.called(t, use, j, "backup", "make (create, attempt 1)")
	found, err := w.get(t.Context(), use, "backup")
	if err != nil {
		t.Fatal(err)
	}
	w.delete(t, use, "backup")
	w.watermark(t, use, now())
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp"} {
		unstructured.RemoveNestedField(found.Object, "metadata", field)
	}
	manifest, err := json.Marshal(found)
	if err != nil {
		t.Fatal(err)
	}
	w.Kubectl(t, string(manifest), "create", "-f", "-")
	w.called(t, use, j, "backup", slices.Repeat([]string{"make (create, attempt 1)"}, 2)...)
	stop()
	w.delete(t, use, "backup")
}

func (w *world) handledChild(t *testing.T) {
	var children atomic.Int32
	stop, _ := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			if strings.HasSuffix(c.Object.Name, "-child") {
				children.Add(1)
				return nil
			}
			child := &fixture.Widget{Spec: fixture.WidgetSpec{Size: 1}}
			child.Name = c.Object.Name + "-child"
			return c.Apply(ctx, child)
		})
	})
	w.widget(t, "parent")
	cluster.Until(t, "the child's create handler runs", func() bool { return children.Load() == 1 })
	w.quiet(t, fixture.StatusCarrier())
	if children.Load() != 1 {
		t.Errorf("it ran %d times, want once", children.Load())
	}
	stop()
}
