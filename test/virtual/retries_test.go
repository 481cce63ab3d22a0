package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Einmal gives up on changes that the API server rejects as invalid after ten attempts, or after MaxAttempts (scenario 92).
func TestWritesThatAreNeverAcceptedEnd(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		tooLong := func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Spec.Color = "a color whose name is longer than the schema allows"
			return nil
		}
		fixture.StartWidgets(w, func(widgets *einmal.Kind[fixture.Widget]) {
			widgets.OnCreate("usual", tooLong, einmal.Fields("spec.color"))
			widgets.OnUpdate("twice", tooLong, einmal.Fields("spec.size"), einmal.MaxAttempts(2))
		})
		one := fixture.NewRedWidget("one")
		w.Create(one)
		w.Advance(24 * time.Hour)
		w.Patch(one, `{"spec":{"size":2}}`)
		w.Advance(24 * time.Hour)
		counted := map[string]int{}
		for _, call := range w.Calls() {
			counted[call.Handler]++
		}
		if diff := cmp.Diff(map[string]int{"usual": 10, "twice": 2}, counted); diff != "" {
			w.Error(diff)
		}
	})
}

// A record that cannot be stored is kept in memory, and nothing is done again; each object is tried less and less often, at
// most once in two minutes, and others are not kept waiting (scenarios 47, 92).
func TestAPassThatFailsIsThrottledByObject(t *testing.T) {
	log := &fixture.Log{}
	made := map[string]int{}
	virtually(t, log, func(op *einmal.Operator) {
		kind := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", "Gadget"))
		kind.OnCreate("make", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
			made[c.Object.GetName()]++
			return nil
		})
	}, func(t *testing.T, w *virtualWorld) {
		full := fixture.NewGadget("full", 1)
		const room = 256 << 10
		full.SetAnnotations(map[string]string{"note": strings.Repeat("x", room-len("note")-1)})
		fixture.Must(t, w.User.Create(t.Context(), full))
		w.Pass(time.Hour)
		failed := log.Count("msg~reconcile failed")
		if failed < 30 || failed > 45 {
			t.Errorf("tried %d times in an hour, want some ten and then one each two minutes", failed)
		}
		fixture.Must(t, w.User.Create(t.Context(), fixture.NewGadget("other", 1)))
		w.Pass(time.Second)
		if made["other"] != 1 {
			t.Error("another object waits")
		}
		fixture.Must(t, w.User.Patch(t.Context(), full, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"note":"short"}}}`))))
		w.Pass(time.Second) // What mends it is looked at at once.
		failed = log.Count("msg~reconcile failed")
		w.Pass(time.Hour)
		if now := log.Count("msg~reconcile failed"); now != failed {
			t.Errorf("%d more failures", now-failed)
		}
	})
	if made["full"] != 1 {
		t.Errorf("the handler was called %d times, want once", made["full"])
	}
}

// The log and an event name the remedy for a blocked deletion (scenario 18).
func TestABlockedDeletionNamesTheWayOut(t *testing.T) {
	log := &fixture.Log{}
	virtually(t, log, func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnDelete("unmake", func(context.Context, *einmal.Change[fixture.Widget]) error {
			return einmal.Permanent(errors.New("no such account"))
		})
	}, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewRedWidget("one")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		fixture.Must(t, w.User.Delete(t.Context(), one))
		w.Pass(time.Minute)
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("events.k8s.io/v1")
		list.SetKind("EventList")
		fixture.Must(t, w.User.List(t.Context(), list))
		found := false
		for _, event := range list.Items {
			note, _, _ := unstructured.NestedString(event.Object, "note")
			found = found || strings.Contains(note, "set the annotation "+fixture.Identity+"/release to unmake")
		}
		if !found {
			t.Errorf("no event names it: %v", list.Items)
		}
		misspelt := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"umake"}}}`, fixture.Identity+"/release"))
		fixture.Must(t, w.User.Patch(t.Context(), one, misspelt))
		w.Pass(time.Minute)
	})
	fixture.ExpectLine(t, log, "remedy="+fixture.Identity+"/release=unmake")
	fixture.ExpectLine(t, log, "msg~release annotation ignored", "known=[unmake]")
}

// Errors that OnError(PolicyIgnore) turns into success are logged as warnings (scenario 24), and so are the handlers that a deletion supersedes
// (35).
func TestTheLogTellsOfIgnoredErrorsAndSupersededHandlers(t *testing.T) {
	log := &fixture.Log{}
	virtually(t, log, func(op *einmal.Operator) {
		widgets := einmal.For[fixture.Widget](op)
		widgets.OnCreate("lenient", func(context.Context, *einmal.Change[fixture.Widget]) error { return errors.New("not that bad") }, einmal.OnError(einmal.PolicyIgnore))
		widgets.OnCreate("slow", func(context.Context, *einmal.Change[fixture.Widget]) error { return einmal.RequeueAfter(time.Hour) })
		widgets.OnDelete("unmake", func(context.Context, *einmal.Change[fixture.Widget]) error { return nil })
	}, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewRedWidget("one")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		fixture.Must(t, w.User.Delete(t.Context(), one))
		w.Pass(time.Minute)
	})
	fixture.ExpectLine(t, log, "level=WARN", "msg=handler failed, error ignored", "error~not that bad")
	fixture.ExpectLine(t, log, "msg=deletion supersedes unfinished handlers", "handlers=[slow]")
}
