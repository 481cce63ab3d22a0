package einmal_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// The places in the test definitions that have a field for records.
const (
	specProperties   = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties"
	statusProperties = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties"
	redByDefault     = `[{"op":"replace","path":"` + specProperties + `/color","value":{"type":"string","default":"red"}}]`
	roomForRecords   = `[{"op":"add","path":"` + statusProperties + `/records","value":{"type":"object","additionalProperties":{"type":"string"}}}]`
)

// allVerbs declares a handler of each sort that looks at all of a widget.
func allVerbs(widgets *einmal.Kind[Widget], j *journal) {
	widgets.OnCreate("make", done(j, "make"))
	widgets.OnResume("greet", done(j, "greet"))
	widgets.OnUpdate("change", func(_ context.Context, c *einmal.Change[Widget]) error {
		j.add(c.Object.Name, fmt.Sprintf("change %v", c.Diff))
		return nil
	})
	widgets.Reconcile("look", done(j, "look"))
	widgets.Timer("rest", 100*time.Hour, done(j, "rest"), einmal.IdleFor(time.Hour))
	widgets.Daemon("guard", func(ctx context.Context, c *einmal.Change[Widget]) error {
		j.add(c.Object.Name, "guard")
		<-ctx.Done()
		return nil
	}, einmal.WithoutFinalizer())
}

func (w *virtualWorld) redefine(t *testing.T, name, patch string) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName(name)
	if err := w.User.Patch(t.Context(), definition, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (w *virtualWorld) merge(t *testing.T, object *unstructured.Unstructured, patch string) {
	t.Helper()
	if err := w.User.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// Scenario 83, second half: a default that is added while the operator runs is not a change. No handler runs and nothing is written, not even
// when all objects are listed again with the default; daemons continue; and the next edit is the only difference.
func TestANewDefaultTriggersNoHandler(t *testing.T) {
	j, log := &journal{}, &syncedText{}
	virtually(t, log, func(op *einmal.Operator) { allVerbs(einmal.For[Widget](op), j) }, func(t *testing.T, w *virtualWorld) {
		one := rawWidget("one")
		one.Object["spec"] = map[string]any{"size": int64(1)}
		if err := w.User.Create(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		w.Pass(30 * time.Minute)
		want, writes := []string{"make 1", "look 1", "guard"}, len(w.Writes())
		expect := func(when string) {
			t.Helper()
			if diff := cmp.Diff(want, j.of("one")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		expect("at first")
		w.redefine(t, widgetDefinition, redByDefault)
		w.Pass(10 * time.Minute)
		expect("with the default")
		w.Server.ExpireWatches()
		w.Pass(10 * time.Minute)
		expect("listed again, with the default")
		if made := w.Writes()[writes:]; len(made) > 0 {
			t.Errorf("written: %v", made)
		}
		w.merge(t, one, `{"spec":{"size":7}}`)
		if color, _, _ := unstructured.NestedString(one.Object, "spec", "color"); color != "red" {
			t.Errorf("the default is not there: %v", one.Object)
		}
		w.Pass(10 * time.Minute)
		want = append(want, "change [{change [spec size] 1 7}]", "look 1")
		expect("after an edit")
		w.Pass(2 * time.Hour)
		want = append(want, "rest 1")
		expect("at rest")
		if n := log.lines("msg=schema of kind changed"); n != 1 {
			t.Errorf("the log says %d times that the schema has changed", n)
		}
	})
}

// When the status gets a field for records, each record moves there with the next write of its object, without an extra write.
func TestRecordsMoveWhenTheSchemaChanges(t *testing.T) {
	j := &journal{}
	use := carriers()[1]
	virtually(t, &syncedText{}, func(op *einmal.Operator) { use.declare(op, plan{journal: j}) }, func(t *testing.T, w *virtualWorld) {
		one := &unstructured.Unstructured{}
		one.SetAPIVersion(testGroup + "/v1")
		one.SetKind(use.kind)
		one.SetNamespace("default")
		one.SetName("one")
		_ = unstructured.SetNestedField(one.Object, int64(1), "spec", "size")
		if err := w.User.Create(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		w.Pass(10 * time.Minute)
		writes := len(w.Writes())
		w.redefine(t, "gadgets."+testGroup, roomForRecords)
		w.Pass(10 * time.Minute)
		if made := w.Writes()[writes:]; len(made) > 0 {
			t.Errorf("written for the room alone: %v", made)
		}
		w.merge(t, one, `{"spec":{"size":2}}`)
		w.Pass(10 * time.Minute)
		if err := w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
			t.Fatal(err)
		}
		if record, _, _ := unstructured.NestedString(one.Object, "status", "records", testIdentity); record == "" || one.GetAnnotations()[testIdentity+"/record"] != "" {
			t.Errorf("the record is not in the status alone: %v", one.Object)
		}
		w.restart(func() {})
		w.Pass(10 * time.Minute)
		want := []string{"make (create, attempt 1)", "resize (update, attempt 1)"}
		if diff := cmp.Diff(want, j.of("one")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// Watching for new schemas costs one small request a minute, for all kinds together.
func TestAtRestAnOperatorAsksOnceAMinuteForItsSchemas(t *testing.T) {
	j := &journal{}
	virtually(t, &syncedText{}, func(op *einmal.Operator) {
		allVerbs(einmal.For[Widget](op), j)
		carriers()[1].declare(op, plan{journal: j})
	}, func(t *testing.T, w *virtualWorld) {
		w.Pass(10*time.Minute + time.Second)
		var mu sync.Mutex
		asked := map[string]int{}
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.URL.Query().Get("watch") == "" {
				mu.Lock()
				asked[r.URL.Path]++
				mu.Unlock()
			}
			next.ServeHTTP(answer, r)
		})
		w.Pass(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if want := map[string]int{"/openapi/v3": 60}; !maps.Equal(asked, want) {
			t.Errorf("asked for %v, want %v", asked, want)
		}
	})
}

// Scenario 83, second half, on the real control plane: a new schema is read within seconds, because watches end with the old one.
func TestANewDefaultTriggersNoHandlerOnARealControlPlane(t *testing.T) {
	w := newWorld(t)
	j := &journal{}
	stop, log := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) { allVerbs(widgets, j) })
	w.create(t, typedCarrier(), "one")
	want := []string{"make 1", "look 1", "guard"}
	cluster.Until(t, "all begins", func() bool { return slices.Equal(j.of("one"), want) })
	w.spend(t, typedCarrier(), "a new default", 0, func() {
		w.Kubectl(t, "", "patch", "crd", widgetDefinition, "--type=json", "-p", redByDefault)
		begun := time.Now()
		cluster.Until(t, "the schema is read", func() bool { return log.lines("msg=schema of kind changed") > 0 })
		t.Logf("the schema is read %s after it has changed", time.Since(begun).Round(time.Millisecond))
	})
	w.edit(t, typedCarrier(), "one", "size", int64(7))
	want = append(want, "change [{change [spec size] 1 7}]", "look 1")
	cluster.Until(t, "the edit is handled", func() bool { return len(j.of("one")) >= len(want) })
	w.quiet(t, typedCarrier())
	if diff := cmp.Diff(want, j.of("one")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	stop()
}
