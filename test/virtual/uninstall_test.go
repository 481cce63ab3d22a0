package virtual_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// declareUndoing declares a kind for each carrier, and Secrets for their key.
func declareUndoing(op *einmal.Operator) {
	widgets, of := fixture.Widgets(op)
	fixture.Undoing(widgets, of.Name)
	gadgets, as := fixture.Gadgets(op)
	fixture.Undoing(gadgets, as.Name)
	einmal.For[corev1.Secret](op).OnCreate("see", func(context.Context, *einmal.Change[corev1.Secret]) error { return nil })
}

// Uninstall removes finalizers and records, with a dry run. Afterwards objects are as if they had never been handled.
func TestUninstallLeavesNothingBehind(t *testing.T) {
	log := fixture.NewLog(t)
	virtually(t, log, declareUndoing, func(t *testing.T, w *virtualWorld) {
		w.makeUndone(t)
		w.Pass(15 * time.Minute) // The watermark has moved.
		w.deleteUndone(t)
		w.Pass(time.Minute)
		w.Stop()
		before := marksOf(t, w)
		if len(before) != 2*4+1+2 {
			t.Fatalf("these have marks: %v", before)
		}
		dry := w.uninstall(t, "--dry-run")
		if diff := cmp.Diff(before, marksOf(t, w)); diff != "" {
			t.Errorf("the dry run has changed something: %s", diff)
		}
		if diff := cmp.Diff(uninstalled("would remove", "would be stripped"), dry); diff != "" {
			t.Errorf("the dry run says (-want +got):\n%s", diff)
		}
		remove := w.Server.Intercept(w.overtakeOnce(t))
		if diff := cmp.Diff(uninstalled("removed", "stripped"), w.uninstall(t)); diff != "" {
			t.Errorf("it says (-want +got):\n%s", diff)
		}
		remove()
		if left := marksOf(t, w); len(left) > 0 {
			t.Errorf("these have marks: %v", left)
		}
		if again := w.uninstall(t); again != "no namespace has a Lease or ConfigMap tests.einmal.dev\n"+
			"objects: 0 stripped, 0 of them without their delete handlers; failed: 0\n" {
			t.Errorf("a second time it says %s", again)
		}
		w.installAgain(t)
	})
}

// installAgain expects that objects are created, as if they had never been handled.
func (w *virtualWorld) installAgain(t *testing.T) {
	t.Helper()
	calls := len(w.Calls())
	w.start()
	w.Pass(time.Minute)
	var made []string
	for _, call := range w.Calls()[calls:] {
		made = append(made, fmt.Sprint(call.Handler, " of ", call.Kind.Kind, " ", call.Object.Name, " for ", call.Reason))
	}
	want := []string{"make of Gadget kept for create", "make of Widget kept for create", "see of Secret s for create"}
	if diff := cmp.Diff(want, slices.Sorted(slices.Values(made))); diff != "" {
		t.Errorf("an operator that is installed again calls (-want +got):\n%s", diff)
	}
}

// uninstalled is what uninstall says. Its order is that of kinds and names.
func uninstalled(removed, stripped string) string {
	own := strings.Replace(stripped, "stripped", "removed", 1)
	const held, last = "; it is being deleted, its delete handlers do not run", ", removing the finalizer deletes it"
	lines := []string{
		"Widget default/blocked: " + removed + " record, condition DeletionBlocked, finalizer" + held + last,
		"Widget default/kept: " + removed + " record, annotation tests.einmal.dev/recreate, finalizer",
		"Widget default/shared: " + removed + " record, finalizer" + held,
		"Widget default/stuck: " + removed + " record, finalizer" + held + last,
		"Gadget default/blocked: " + removed + " record, condition DeletionBlocked, finalizer" + held + last,
		"Gadget default/kept: " + removed + " record, annotation tests.einmal.dev/recreate, finalizer",
		"Gadget default/shared: " + removed + " record, finalizer" + held,
		"Gadget default/stuck: " + removed + " record, finalizer" + held + last,
		"Secret default/s: " + removed + " record",
		"ConfigMap default/tests.einmal.dev: " + own,
		"Secret default/tests.einmal.dev: " + own,
		"objects: 9 " + stripped + ", 6 of them without their delete handlers; failed: 0",
	}
	return strings.Join(lines, "\n") + "\n"
}

func (w *virtualWorld) uninstall(t *testing.T, args ...string) string {
	t.Helper()
	said, err := w.tryUninstall(t, args...)
	if err != nil {
		t.Errorf("uninstall: %v", err)
	}
	return said
}

func (w *virtualWorld) makeUndone(t *testing.T) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
	made := []client.Object{secret}
	for _, kind := range []string{"Widget", "Gadget"} {
		kept, shared := undone(kind, "kept"), undone(kind, "shared")
		kept.SetAnnotations(map[string]string{fixture.Identity + "/recreate": "x", "theirs": "y"})
		shared.SetFinalizers([]string{"others.example.com/finalizer"})
		made = append(made, kept, shared, undone(kind, "stuck"), undone(kind, "blocked"))
	}
	for _, one := range made {
		if err := w.User.Create(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *virtualWorld) deleteUndone(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"Widget", "Gadget"} {
		for _, name := range []string{"stuck", "blocked", "shared"} {
			if err := w.User.Delete(t.Context(), undone(kind, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func undone(kind, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	made.SetAPIVersion(fixture.Group + "/v1")
	made.SetKind(kind)
	made.SetNamespace("default")
	made.SetName(name)
	return made
}

// marksOf are the texts of all objects in which the operator is named, but for managed fields and events.
func marksOf(t *testing.T, w *virtualWorld) []string {
	t.Helper()
	var found []string
	for _, kind := range []string{fixture.Group + "/v1 Widget", fixture.Group + "/v1 Gadget", "v1 Secret", "v1 ConfigMap"} {
		version, name, _ := strings.Cut(kind, " ")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(name + "List")
		if err := w.User.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			item.SetManagedFields(nil)
			if text, err := json.Marshal(item.Object); err != nil {
				t.Fatal(err)
			} else if strings.Contains(string(text), fixture.Identity) {
				found = append(found, string(text))
			}
		}
	}
	return found
}

// overtakeOnce changes the record of a widget just before uninstall takes it out.
func (w *virtualWorld) overtakeOnce(t *testing.T) func(http.ResponseWriter, *http.Request, http.Handler) {
	t.Helper()
	var done atomic.Bool // Objects are stripped several at a time.
	t.Cleanup(func() {
		if !done.Load() {
			t.Error("no other client was faster than uninstall")
		}
	})
	return func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/widgets/kept") && done.CompareAndSwap(false, true) {
			merge := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"records":{"`+fixture.Identity+`":"another"}}}`))
			if err := w.User.Status().Patch(r.Context(), undone("Widget", "kept"), merge); err != nil {
				t.Error(err)
			}
		}
		next.ServeHTTP(answer, r)
	}
}
