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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// storedPlaces returns where the operator has stored that the records of tenants are.
func (w *virtualWorld) storedPlaces(t *testing.T) string {
	t.Helper()
	var stored corev1.ConfigMap
	fixture.Must(t, client.IgnoreNotFound(w.User.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: fixture.Identity}, &stored)))
	return stored.Data["records_tenants."+fixture.Group]
}

// recordIn returns the record of a tenant in a carrier.
func (w *virtualWorld) recordIn(t *testing.T, of *unstructured.Unstructured, carrier record.Carrier) string {
	t.Helper()
	fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(of), of))
	text, _, _ := unstructured.NestedString(of.Object, carrier.Path(fixture.Identity)...)
	return text
}

// annotate does what a user can do who may only annotate: it writes a record with the right uid into the annotation.
func (w *virtualWorld) annotate(t *testing.T, of *unstructured.Unstructured, text string) {
	t.Helper()
	var forged map[string]any
	fixture.Must(t, json.Unmarshal([]byte(text), &forged))
	forged["uid"], forged["writes"] = string(of.GetUID()), 999
	encoded, err := json.Marshal(forged)
	fixture.Must(t, err)
	w.merge(t, of, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, object.RecordAnnotation(fixture.Identity), encoded))
}

// A user who may annotate cannot keep the operator from handling an object of a kind with records in the status, whether the object is new or not.
func TestAnAnnotationIsNoRecordWhereRecordsAreInTheStatus(t *testing.T) {
	j, log := &fixture.Journal{}, fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) { fixture.DeclareRelease(op, record.Status, j) }, func(t *testing.T, w *virtualWorld) {
		handled, one := fixture.NewTenantWithLimit("handled"), fixture.NewTenantWithLimit("one")
		fixture.Must(t, w.User.Create(t.Context(), handled))
		w.Pass(3 * time.Minute)
		if places := w.storedPlaces(t); places != "status" {
			t.Errorf("the places of records are %q, want status", places)
		}
		text := w.recordIn(t, handled, record.Status)
		w.restart(func() {
			fixture.Must(t, w.User.Create(t.Context(), one))
			w.annotate(t, one, text)
			w.merge(t, handled, `{"spec":{"limit":2}}`)
			w.annotate(t, handled, w.recordIn(t, handled, record.Status))
		})
		w.Pass(time.Minute)
		w.annotate(t, one, text)
		w.merge(t, one, `{"spec":{"limit":3}}`)
		w.Pass(time.Minute)
		w.annotate(t, one, `{"v":99,"apiVersion":"x"}`)
		w.merge(t, one, `{"spec":{"limit":4}}`)
		w.Pass(time.Hour)
		want := []string{"make", "make", "resize [{change [spec limit] 1 2}]", "resize [{change [spec limit] 1 3}]", "resize [{change [spec limit] 3 4}]"}
		got := j.Of("one")
		if len(got) > 2 && got[1] != "make" {
			got[1], got[2] = got[2], got[1] // Two objects wait when the operator starts.
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// Without a ConfigMap nothing says which release has written an annotation. So no handler gets the result of a step from there, and the deletion
// is handled.
func TestAnAnnotationSuppliesNoResultsWithoutAConfigMap(t *testing.T) {
	const forged = `{"v":1,"apiVersion":"v1","deleted":true,"handlers":{
		"make":{"cause":"create","outcome":"retry","attempts":1,"started":"2026-11-21T07:00:00Z","next":"2026-11-21T07:00:00Z","steps":{"word":{"result":{"text":"guessed"}}}}}}`
	type word struct {
		Text string `json:"text"`
	}
	type tenant = einmal.Resource[struct {
		Limit int `json:"limit,omitempty"`
	}, struct {
		einmal.Records `json:",inline"`
	}]
	j, log := &fixture.Journal{}, fixture.NewLog(t)
	virtuallyMade(t, log, func() simulation.Operator {
		op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()))
		tenants := einmal.For[tenant](op, einmal.GVK(fixture.Group, "v1", "Tenant"))
		tenants.OnCreate("make", func(ctx context.Context, c *einmal.Change[tenant]) error {
			known, err := einmal.StepResult(ctx, c, "word", func(context.Context) (word, error) { return word{Text: "random"}, nil })
			j.Add("one", "make with the word "+known.Text)
			return err
		})
		tenants.OnDelete("erase", func(context.Context, *einmal.Change[tenant]) error {
			j.Add("one", "erase")
			return nil
		})
		return op
	}, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewTenantWithLimit("one")
		w.restart(func() {
			fixture.Must(t, w.User.Create(t.Context(), one))
			w.annotate(t, one, forged)
		})
		w.Pass(time.Minute)
		if said := log.String(); strings.Count(said, "nothing says that an earlier release kept records here") != 1 {
			t.Errorf("the log does not warn once:\n%s", said)
		}
		fixture.Must(t, w.User.Delete(t.Context(), one))
		w.Pass(time.Minute)
		if diff := cmp.Diff([]string{"make with the word random", "erase"}, j.Of("one")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// forbidStatus lets no client patch the status of an object, until the function that it returns is called.
func (w *virtualWorld) forbidStatus() (allow func()) {
	return w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status") {
			refuse(answer, http.StatusForbidden, "Forbidden")
			return
		}
		next.ServeHTTP(answer, r)
	})
}

// Releases go back and forth, and the one with annotations may not write the status: the old record stays there. The next release reads the newer
// one.
func TestAnOldRecordThatCouldNotBeRemovedIsNotRead(t *testing.T) {
	j, carrier, log := &fixture.Journal{}, record.Status, fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) { fixture.DeclareRelease(op, carrier, j) }, func(t *testing.T, w *virtualWorld) {
		one := fixture.NewTenantWithLimit("one")
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(3 * time.Minute)
		for round, limit := range []int{2, 3} {
			allow := w.forbidStatus()
			w.restart(func() { carrier = record.Annotation })
			w.Pass(time.Minute)
			w.merge(t, one, fmt.Sprintf(`{"spec":{"limit":%d}}`, limit))
			w.Pass(3 * time.Minute)
			if w.recordIn(t, one, record.Status) == "" {
				t.Error("the record in the status was removed")
			}
			w.Stop()
			allow()
			carrier = record.Status
			w.start()
			w.Pass(3 * time.Minute)
			if places := w.storedPlaces(t); places != "status" || w.recordIn(t, one, record.Annotation) != "" {
				t.Errorf("round %d: the places of records are %q, and the annotation holds %q", round, places, w.recordIn(t, one, record.Annotation))
			}
		}
		want := []string{"make", "resize [{change [spec limit] 1 2}]", "resize [{change [spec limit] 2 3}]"}
		if diff := cmp.Diff(want, j.Of("one")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// A client that may write the record of an object cannot keep its delete handlers from running with a record that says, before the deletion, that they have
// run. Nor do the operator and the record go round in circles.
func TestARecordThatSaysDeletedOfALiveObjectIsCorrected(t *testing.T) {
	type tenant = einmal.Resource[struct {
		Limit int `json:"limit,omitempty"`
	}, struct{}]
	for name, down := range map[string]bool{"while the operator runs": false, "while no process runs": true} {
		t.Run(name, func(t *testing.T) {
			j, log := &fixture.Journal{}, fixture.NewLog(t)
			virtually(t, log, func(op *einmal.Operator) {
				tenants := einmal.For[tenant](op, einmal.GVK(fixture.Group, "v1", "Tenant"))
				tenants.OnCreate("make", func(context.Context, *einmal.Change[tenant]) error {
					j.Add("one", "make")
					return nil
				})
				tenants.OnDelete("erase", func(context.Context, *einmal.Change[tenant]) error {
					j.Add("one", "erase")
					return nil
				})
			}, func(t *testing.T, w *virtualWorld) {
				one := fixture.NewTenantWithLimit("one")
				fixture.Must(t, w.User.Create(t.Context(), one))
				w.Pass(time.Minute)
				w.limitPatches(20) // An operator that believes the record writes without a pause, and virtual time stands still.
				text := strings.Replace(w.recordIn(t, one, record.Annotation), `{`, `{"deleted":true,`, 1)
				if down {
					w.restart(func() { w.annotate(t, one, text) })
				} else {
					w.annotate(t, one, text)
				}
				w.Pass(time.Minute)
				if kept := w.recordIn(t, one, record.Annotation); strings.Contains(kept, "deleted") {
					t.Errorf("the record still says that the delete handlers have run: %s", kept)
				}
				fixture.Must(t, w.User.Delete(t.Context(), one))
				w.Pass(time.Minute)
				if diff := cmp.Diff([]string{"make", "erase"}, j.Of("one")); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// limitPatches makes the API server fail for all patches of objects after the first ones.
func (w *virtualWorld) limitPatches(most int64) {
	var patches atomic.Int64
	w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/tenants/") && patches.Add(1) > most {
			refuse(answer, http.StatusInternalServerError, "InternalError")
			return
		}
		next.ServeHTTP(answer, r)
	})
}

// storedKeys returns what the operator has stored of where records are, in order.
func (w *virtualWorld) storedKeys(t *testing.T) string {
	t.Helper()
	var stored corev1.ConfigMap
	fixture.Must(t, w.User.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: fixture.Identity}, &stored))
	var keys []string
	for key, text := range stored.Data {
		if strings.HasPrefix(key, "records_") {
			keys = append(keys, key+"="+text)
		}
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// Where records are is written once for each kind, and not again by later processes, also if the operator serves single namespaces.
func TestWhereRecordsAreIsWrittenOnce(t *testing.T) {
	for name, test := range map[string]struct {
		options []einmal.OperatorOption
		keys    string
	}{
		"all namespaces":    {nil, "records_gadgets.%[1]s=annotation records_tenants.%[1]s=status"},
		"single namespaces": {[]einmal.OperatorOption{einmal.Namespaces("de*")}, "records_gadgets.%[1]s_default=annotation records_tenants.%[1]s_default=status"},
	} {
		t.Run(name, func(t *testing.T) {
			j := &fixture.Journal{}
			virtuallyMade(t, fixture.NewLog(t), func() simulation.Operator {
				op := einmal.New(fixture.Identity, append(test.options, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()), einmal.StateNamespace("default"))...)
				fixture.DeclareRelease(op, record.Status, j)
				einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", "Gadget")).
					OnCreate("make", func(context.Context, *einmal.Change[unstructured.Unstructured]) error { return nil })
				return op
			}, func(t *testing.T, w *virtualWorld) {
				fixture.Must(t, w.User.Create(t.Context(), fixture.NewTenantWithLimit("one")))
				fixture.Must(t, w.User.Create(t.Context(), fixture.NewGadget("one", 1)))
				w.Pass(5 * time.Minute)
				w.restart(func() {})
				w.Pass(5 * time.Minute)
				written := len(slices.DeleteFunc(w.Writes(), func(made simulation.Request) bool { return made.Resource != "configmaps" }))
				if got, want := w.storedKeys(t), fmt.Sprintf(test.keys, fixture.Group); written != 4 || got != want {
					t.Errorf("%d writes, the ConfigMap has %s, want 4, two of them watermarks, and %s", written, got, want)
				}
			})
		})
	}
}
