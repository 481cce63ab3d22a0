package virtual_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/test/fixture"
)

// storedRecord returns the record of the object "one" of the carrier's kind, as the API server has it.
func (w *virtualWorld) storedRecord(t *testing.T, use fixture.Carrier) string {
	t.Helper()
	found := use.Object("one")
	fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(found), found))
	return use.Record(found)
}

// overwriteRecord writes another text in place of the record, as a person or a GitOps tool does.
func (w *virtualWorld) overwriteRecord(t *testing.T, use fixture.Carrier, name, text string) {
	t.Helper()
	place := record.Annotation
	if use.Name == "status" {
		place = record.Status
	}
	merge, err := json.Marshal(object.With(object.Body{}, place.Path(fixture.Identity), text))
	fixture.Must(t, err)
	if place == record.Status {
		err = w.User.Status().Patch(t.Context(), use.Object(name), client.RawPatch(types.MergePatchType, merge))
	} else {
		err = w.User.Patch(t.Context(), use.Object(name), client.RawPatch(types.MergePatchType, merge))
	}
	fixture.Must(t, err)
}

// A record that is overwritten while the operator runs is written again, so that the next process knows what was done.
func TestAnOverwrittenRecordIsPutBack(t *testing.T) {
	for name, overwrite := range map[string]func(stored string) string{
		"of another object": func(stored string) string { return strings.Replace(stored, `"uid":"`, `"uid":"other-`, 1) },
		"malformed":         func(stored string) string { return stored[:len(stored)/2] },
		"any text":          func(string) string { return "no record" },
	} {
		for _, use := range fixture.Carriers() {
			t.Run(name+", record in the "+use.Name, func(t *testing.T) {
				j := &fixture.Journal{}
				note := func(id string) einmal.HandlerFunc[unstructured.Unstructured] {
					return func(context.Context, *einmal.Change[unstructured.Unstructured]) error {
						j.Add("one", id)
						return nil
					}
				}
				virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
					kind := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", use.Kind))
					kind.OnCreate("make", note("make"))
					kind.OnUpdate("follow", note("follow"))
				}, func(t *testing.T, w *virtualWorld) {
					fixture.Must(t, w.User.Create(t.Context(), use.Object("one")))
					w.Pass(time.Minute)
					before := w.storedRecord(t, use)
					w.overwriteRecord(t, use, "one", overwrite(before))
					w.Pass(time.Minute)
					if diff := cmp.Diff(before, w.storedRecord(t, use)); diff != "" {
						t.Errorf("the record is not put back (-want +got):\n%s", diff)
					}
					w.restart(func() {})
					w.Pass(time.Hour)
				})
				if diff := cmp.Diff([]string{"make"}, j.Of("one")); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Two processes write the record of one object, each with the outcome of another handler: the one that is refused reads the
// object again and adds its outcome to what the other one has written.
func TestAConflictKeepsTheOutcomesOfBothWriters(t *testing.T) {
	for _, use := range fixture.Carriers() {
		t.Run("record in the "+use.Name, func(t *testing.T) {
			j := &fixture.Journal{}
			var overtake func()
			handlers := func(id string, patience time.Duration) einmal.HandlerFunc[unstructured.Unstructured] {
				return func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
					j.Add("one", id)
					if c.Attempt == 1 {
						return einmal.RetryAfter(patience, errors.New("not yet"))
					}
					overtake()
					return nil
				}
			}
			virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
				kind := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", use.Kind))
				kind.OnCreate("soon", handlers("soon", time.Minute))
				kind.OnCreate("late", handlers("late", time.Hour))
			}, func(t *testing.T, w *virtualWorld) {
				overtake = func() { // As another process does that has called the other handler.
					stored, err := record.Decode(w.storedRecord(t, use))
					fixture.Must(t, err)
					done := record.Entry{Cause: string(cause.Create), Outcome: record.Done, Seen: stored.Handlers["late"].Seen}
					text, err := stored.With("late", done).Encode()
					fixture.Must(t, err)
					w.overwriteRecord(t, use, "one", text)
				}
				fixture.Must(t, w.User.Create(t.Context(), use.Object("one")))
				w.Pass(3 * time.Hour)
				if text := w.storedRecord(t, use); strings.Contains(text, `"outcome"`) || !strings.Contains(text, `"base"`) {
					t.Errorf("the creation is not closed: %s", text)
				}
				w.restart(func() {})
				w.Pass(3 * time.Hour)
			})
			if diff := cmp.Diff([]string{"soon", "late", "soon"}, j.Of("one")); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// What was done and cannot be saved is kept in memory, and saved when the API server accepts it: no handler is repeated.
func TestWhatCannotBeSavedIsNotDoneAgain(t *testing.T) {
	for _, use := range fixture.Carriers() {
		t.Run("record in the "+use.Name, func(t *testing.T) {
			j := &fixture.Journal{}
			virtually(t, fixture.NewLog(t), func(op *einmal.Operator) { use.Declare(op, fixture.Plan{Journal: j}) }, func(t *testing.T, w *virtualWorld) {
				mend := w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
					if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/"+use.Resource+"/") {
						refuse(answer, http.StatusInternalServerError, "InternalError")
						return
					}
					next.ServeHTTP(answer, r)
				})
				fixture.Must(t, w.User.Create(t.Context(), use.Object("one")))
				w.Pass(10 * time.Minute)
				mend()
				w.Pass(10 * time.Minute)
				w.restart(func() {})
				w.Pass(time.Hour)
			})
			if diff := cmp.Diff([]string{"make (create, attempt 1)"}, j.Of("one")); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
