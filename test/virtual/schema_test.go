package virtual_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

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
	j, log := &fixture.Journal{}, &fixture.Log{}
	virtually(t, log, func(op *einmal.Operator) { fixture.AllVerbs(einmal.For[fixture.Widget](op), j) }, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewUntypedWidget("one")
		one.Object["spec"] = map[string]any{"size": int64(1)}
		if err := w.User.Create(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		w.Pass(30 * time.Minute)
		want, writes := []string{"make 1", "look 1", "guard"}, len(w.Writes())
		expect := func(when string) {
			t.Helper()
			if diff := cmp.Diff(want, j.Of("one")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		expect("at first")
		w.redefine(t, fixture.WidgetCRD, fixture.RedByDefault)
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
		if n := log.Count("msg=schema of kind changed"); n != 1 {
			t.Errorf("the log says %d times that the schema has changed", n)
		}
	})
}

// When the status gets a field for records, each record moves there with the next write of its object, without an extra write.
func TestRecordsMoveWhenTheSchemaChanges(t *testing.T) {
	j := &fixture.Journal{}
	use := fixture.Carriers()[1]
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) { use.Declare(op, fixture.Plan{Journal: j}) }, func(t *testing.T, w *virtualWorld) {
		one := &unstructured.Unstructured{}
		one.SetAPIVersion(fixture.Group + "/v1")
		one.SetKind(use.Kind)
		one.SetNamespace("default")
		one.SetName("one")
		_ = unstructured.SetNestedField(one.Object, int64(1), "spec", "size")
		if err := w.User.Create(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		w.Pass(10 * time.Minute)
		writes := len(w.Writes())
		w.redefine(t, "gadgets."+fixture.Group, fixture.RoomForRecords)
		w.Pass(10 * time.Minute)
		if made := w.Writes()[writes:]; len(made) > 0 {
			t.Errorf("written for the room alone: %v", made)
		}
		w.merge(t, one, `{"spec":{"size":2}}`)
		w.Pass(10 * time.Minute)
		if err := w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
			t.Fatal(err)
		}
		if record, _, _ := unstructured.NestedString(one.Object, "status", "records", fixture.Identity); record == "" || one.GetAnnotations()[fixture.Identity+"/record"] != "" {
			t.Errorf("the record is not in the status alone: %v", one.Object)
		}
		w.restart(func() {})
		w.Pass(10 * time.Minute)
		want := []string{"make (create, attempt 1)", "resize (update, attempt 1)"}
		if diff := cmp.Diff(want, j.Of("one")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// Watching for new schemas costs one small request a minute, for all kinds together, and at most three after a watch has begun again: the API server
// ends the watches of a kind whose definition changes. Before each of these watches, the operator lists one object, to notice a restore of etcd.
func TestAtRestAnOperatorRarelyAsksForItsSchemas(t *testing.T) {
	j := &fixture.Journal{}
	virtually(t, &fixture.Log{}, func(op *einmal.Operator) {
		fixture.AllVerbs(einmal.For[fixture.Widget](op), j)
		fixture.Carriers()[1].Declare(op, fixture.Plan{Journal: j})
	}, func(t *testing.T, w *virtualWorld) {
		w.Pass(10*time.Minute + time.Second)
		var mu sync.Mutex
		asked, watches, checks := map[string]int{}, 0, 0
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			mu.Lock()
			switch query := r.URL.Query(); {
			case query.Get("watch") != "":
				watches++
			case query.Get("limit") == "1":
				checks++
			default:
				asked[r.URL.Path]++
			}
			mu.Unlock()
			next.ServeHTTP(answer, r)
		})
		w.Pass(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		schemas := asked["/openapi/v3"]
		delete(asked, "/openapi/v3")
		least, most := 58, 60+3*watches // Two requests are at most 62 seconds apart.
		if watches == 0 || checks != watches || schemas < least || schemas > most || len(asked) > 0 {
			t.Errorf("asked %d times for schemas, want %d to %d after %d watches and %d checks; also asked for %v", schemas, least, most, watches, checks, asked)
		}
	})
}
