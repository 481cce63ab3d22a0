package cluster_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// TestOnARealControlPlane shows the promises of the framework on a real API server, with records in the status and in
// an annotation. Operators run under their own account.
func TestOnARealControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, use := range fixture.Carriers() {
		t.Run("record in the "+use.Name, func(t *testing.T) {
			t.Run("write budget (scenarios 1, 3, 21, 39 and 57)", func(t *testing.T) { w.writeBudget(t, use) })
			t.Run("write budget with a delete handler (scenario 10)", func(t *testing.T) { w.writeBudgetWithDelete(t, use) })
			t.Run("an object from before the start is handled once (scenarios 2, 3)", func(t *testing.T) { w.objectBeforeStart(t, use) })
			t.Run("ten re-applies and ten restarts create once (scenario 3)", func(t *testing.T) { w.reapplyAndRestart(t, use) })
			t.Run("changed while down (scenarios 4, 5)", func(t *testing.T) { w.changedWhileDown(t, use) })
			t.Run("kubectl replace while running repeats nothing", func(t *testing.T) { w.replaceWhileRunning(t, use) })
			t.Run("deleted while down (scenario 12)", func(t *testing.T) { w.deletedWhileDown(t, use) })
			t.Run("re-created under the same name (scenario 20)", func(t *testing.T) { w.recreated(t, use) })
			t.Run("a large object is handled as any other (G6)", func(t *testing.T) { w.largeObject(t, use) })
			t.Run("a foreign finalizer keeps the object (scenarios 14, 16)", func(t *testing.T) { w.foreignFinalizer(t, use) })
		})
	}
}

// spend runs an action and checks how many patches the operator needed for it.
func (w *world) spend(t *testing.T, use fixture.Carrier, what string, budget int, action func()) {
	t.Helper()
	before := w.Patches(t, use.Resource)
	action()
	w.quiet(t, use)
	got := w.Patches(t, use.Resource) - before
	t.Logf("%s, record in the %s: %d writes (budget %d)", what, use.Name, got, budget)
	if got != budget {
		t.Errorf("%s: %d writes, want %d", what, got, budget)
	}
}

func (w *world) create(t *testing.T, use fixture.Carrier, name string) {
	t.Helper()
	w.Kubectl(t, use.Manifest(name, 1), "create", "-f", "-")
}

// edit changes the object with a PUT, so that only the operator patches.
func (w *world) edit(t *testing.T, use fixture.Carrier, name string, field string, value any) {
	t.Helper()
	cluster.Eventually(t, "edit "+name, func(ctx context.Context) error {
		found, err := w.get(ctx, use, name)
		if err != nil {
			return err
		}
		if field == "label" {
			found.SetLabels(map[string]string{"team": fmt.Sprint(value)})
		} else {
			found.Object["spec"].(map[string]any)[field] = value
		}
		return w.Update(ctx, found)
	})
}

func (w *world) delete(t *testing.T, use fixture.Carrier, name string) {
	t.Helper()
	w.Kubectl(t, "", "delete", use.Resource, name, "--wait=true")
}

func (w *world) writeBudget(t *testing.T, use fixture.Carrier) {
	j := &fixture.Journal{}
	stop := w.operator(t, use, fixture.Plan{Journal: j, OnResume: true, Fails: map[string]int{"fails": 3, "quietly-fails": 3}})
	w.spend(t, use, "create", use.Writes(1, 2), func() {
		w.create(t, use, "plain")
		w.called(t, use, j, "plain", "make (create, attempt 1)")
	})
	w.spend(t, use, "update", use.Writes(1, 2), func() {
		w.edit(t, use, "plain", "size", int64(2))
		w.called(t, use, j, "plain", "make (create, attempt 1)", "resize (update, attempt 1)")
	})
	w.spend(t, use, "a change in no view (scenario 39)", 0, func() {
		w.edit(t, use, "plain", "color", "red")
		w.edit(t, use, "plain", "label", "a")
	})
	four := []string{"make (create, attempt 1)", "make (create, attempt 2)", "make (create, attempt 3)", "make (create, attempt 4)"}
	w.spend(t, use, "three failures, then success and a status", use.Writes(4, 5), func() {
		w.create(t, use, "quietly-fails")
		w.called(t, use, j, "quietly-fails", four...)
	})
	// The user's status is a write of its own where the record is in an annotation; here it changes in every attempt.
	w.spend(t, use, "three failures, each with a status, then success", use.Writes(4, 8), func() {
		w.create(t, use, "fails")
		w.called(t, use, j, "fails", four...)
	})
	stop()
	w.spend(t, use, "restart with a resume handler", 0, func() {
		again := &fixture.Journal{}
		stop := w.operator(t, use, fixture.Plan{Journal: again, OnResume: true})
		w.called(t, use, again, "plain", "greet (resume, attempt 1)")
		stop()
	})
	w.delete(t, use, "plain")
	w.delete(t, use, "fails")
	w.delete(t, use, "quietly-fails")
}

func (w *world) writeBudgetWithDelete(t *testing.T, use fixture.Carrier) {
	j := &fixture.Journal{}
	stop := w.operator(t, use, fixture.Plan{Journal: j, OnDelete: true})
	w.spend(t, use, "create with a delete handler", use.Writes(2, 3), func() {
		w.create(t, use, "held")
		w.called(t, use, j, "held", "make (create, attempt 1)")
	})
	w.spend(t, use, "delete", 1, func() {
		w.delete(t, use, "held")
	})
	if got := j.Of("held"); !slices.Equal(got, []string{"make (create, attempt 1)", "unmake (delete, attempt 1)"}) {
		t.Errorf("calls: %q", got)
	}
	stop()
}

func (w *world) objectBeforeStart(t *testing.T, use fixture.Carrier) {
	w.create(t, use, "early")
	first := &fixture.Journal{}
	stop := w.operator(t, use, fixture.Plan{Journal: first, OnResume: true})
	w.called(t, use, first, "early", "make (create, attempt 1)")
	stop()
	w.spend(t, use, "restart", 0, func() {
		second := &fixture.Journal{}
		stop := w.operator(t, use, fixture.Plan{Journal: second, OnResume: true})
		w.called(t, use, second, "early", "greet (resume, attempt 1)")
		stop()
	})
	w.delete(t, use, "early")
}

func (w *world) reapplyAndRestart(t *testing.T, use fixture.Carrier) {
	j := &fixture.Journal{}
	for round := range 10 {
		stop := w.operator(t, use, fixture.Plan{Journal: j})
		w.Kubectl(t, use.Manifest("often", 1), "apply", "-f", "-")
		w.called(t, use, j, "often", "make (create, attempt 1)")
		if round == 9 {
			for range 10 {
				w.Kubectl(t, use.Manifest("often", 1), "apply", "-f", "-")
			}
			w.called(t, use, j, "often", "make (create, attempt 1)")
		}
		stop()
	}
	w.delete(t, use, "often")
}

func (w *world) changedWhileDown(t *testing.T, use fixture.Carrier) {
	j := &fixture.Journal{}
	stop := w.operator(t, use, fixture.Plan{Journal: j})
	w.create(t, use, "slept")
	w.called(t, use, j, "slept", "make (create, attempt 1)")
	stop()
	w.edit(t, use, "slept", "size", int64(5))
	w.edit(t, use, "slept", "size", int64(1))
	w.spend(t, use, "changed and reverted while down", 0, func() {
		stop := w.operator(t, use, fixture.Plan{Journal: j})
		w.called(t, use, j, "slept", "make (create, attempt 1)")
		stop()
	})
	w.edit(t, use, "slept", "size", int64(2))
	w.edit(t, use, "slept", "size", int64(3))
	stop = w.operator(t, use, fixture.Plan{Journal: j})
	w.called(t, use, j, "slept", "make (create, attempt 1)", "resize (update, attempt 1)")
	found, err := w.get(t.Context(), use, "slept")
	if err != nil {
		t.Fatal(err)
	}
	if phase := fmt.Sprint(found.Object["status"]); !strings.Contains(phase, "[{change [spec size] 1 3}]") {
		t.Errorf("the update handler saw %s, want the whole change from 1 to 3", phase)
	}
	stop()
	w.delete(t, use, "slept")
}

func (w *world) replaceWhileRunning(t *testing.T, use fixture.Carrier) {
	j := &fixture.Journal{}
	stop := w.operator(t, use, fixture.Plan{Journal: j, OnDelete: true})
	w.create(t, use, "replaced")
	w.called(t, use, j, "replaced", "make (create, attempt 1)")
	before, err := w.get(t.Context(), use, "replaced")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.Kubectl(t, use.Manifest("replaced", 1), "replace", "-f", "-")
		cluster.Eventually(t, "finalizer and record are back", func(ctx context.Context) error {
			now, err := w.get(ctx, use, "replaced")
			if err == nil && (len(now.GetFinalizers()) != 1 || use.Record(now) != use.Record(before)) {
				err = fmt.Errorf("finalizers %q, record %q", now.GetFinalizers(), use.Record(now))
			}
			return err
		})
	}
	w.called(t, use, j, "replaced", "make (create, attempt 1)")
	w.Kubectl(t, use.Manifest("replaced", 4), "replace", "-f", "-")
	w.called(t, use, j, "replaced", "make (create, attempt 1)", "resize (update, attempt 1)")
	w.delete(t, use, "replaced")
	if got := len(j.Of("replaced")); got != 3 {
		t.Errorf("calls: %q", j.Of("replaced"))
	}
	stop()
}

func (w *world) deletedWhileDown(t *testing.T, use fixture.Carrier) {
	j := &fixture.Journal{}
	stop := w.operator(t, use, fixture.Plan{Journal: j, OnDelete: true, OnResume: true})
	w.create(t, use, "left")
	w.called(t, use, j, "left", "make (create, attempt 1)")
	stop()
	w.Kubectl(t, "", "delete", use.Resource, "left", "--wait=false")
	stop = w.operator(t, use, fixture.Plan{Journal: j, OnDelete: true, OnResume: true})
	w.vanished(t, use, "left")
	if got := j.Of("left"); !slices.Equal(got, []string{"make (create, attempt 1)", "unmake (delete, attempt 1)"}) {
		t.Errorf("calls: %q", got)
	}
	stop()
}

func (w *world) vanished(t *testing.T, use fixture.Carrier, name string) {
	t.Helper()
	cluster.Eventually(t, name+" is gone", func(ctx context.Context) error {
		_, err := w.get(ctx, use, name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("still there (%w)", err)
	})
}

func (w *world) recreated(t *testing.T, use fixture.Carrier) {
	j := &fixture.Journal{}
	stop := w.operator(t, use, fixture.Plan{Journal: j})
	for round := 1; round <= 3; round++ {
		w.create(t, use, "phoenix")
		w.called(t, use, j, "phoenix", slices.Repeat([]string{"make (create, attempt 1)"}, round)...)
		w.delete(t, use, "phoenix")
	}
	stop()
}

// The object's annotations take most of the 256 KiB that there is for them, and cannot be compressed.
func (w *world) largeObject(t *testing.T, use fixture.Carrier) {
	noise := make([]byte, 150<<10)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	large := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(use.Manifest("large", 1)), &large.Object); err != nil {
		t.Fatal(err)
	}
	large.SetAnnotations(map[string]string{"noise": base64.StdEncoding.EncodeToString(noise)})
	j := &fixture.Journal{}
	stop := w.operator(t, use, fixture.Plan{Journal: j})
	if err := w.Create(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	w.called(t, use, j, "large", "make (create, attempt 1)")
	w.edit(t, use, "large", "size", int64(2))
	w.called(t, use, j, "large", "make (create, attempt 1)", "resize (update, attempt 1)")
	stop()
	stop = w.operator(t, use, fixture.Plan{Journal: j})
	w.called(t, use, j, "large", "make (create, attempt 1)", "resize (update, attempt 1)")
	stop()
	w.delete(t, use, "large")
}

func (w *world) foreignFinalizer(t *testing.T, use fixture.Carrier) {
	j := &fixture.Journal{}
	stop := w.operator(t, use, fixture.Plan{Journal: j, OnDelete: true})
	w.Kubectl(t, strings.Replace(use.Manifest("shared", 1), "namespace", "finalizers: [other.example.com/keep], namespace", 1), "create", "-f", "-")
	w.called(t, use, j, "shared", "make (create, attempt 1)")
	w.Kubectl(t, "", "delete", use.Resource, "shared", "--wait=false")
	cluster.Eventually(t, "only the other finalizer stays", func(ctx context.Context) error {
		now, err := w.get(ctx, use, "shared")
		if err == nil && !slices.Equal(now.GetFinalizers(), []string{"other.example.com/keep"}) {
			err = fmt.Errorf("finalizers: %q", now.GetFinalizers())
		}
		return err
	})
	want := []string{"make (create, attempt 1)", "unmake (delete, attempt 1)"}
	w.called(t, use, j, "shared", want...)
	stop()
	stop = w.operator(t, use, fixture.Plan{Journal: j, OnDelete: true, OnResume: true})
	w.edit(t, use, "shared", "label", "late")
	w.called(t, use, j, "shared", want...)
	w.Kubectl(t, "", "patch", use.Resource, "shared", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	w.vanished(t, use, "shared")
	stop()
}
