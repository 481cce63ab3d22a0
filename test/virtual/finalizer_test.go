package virtual_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

// foreignFinalizer is a finalizer that stays in these tests.
const foreignFinalizer = "others.example.com/hold"

// finalizerPatches notes the finalizer requests of the operator, each as the operation and the answer's code. Before is called
// ahead of the first one.
func (w *virtualWorld) finalizerPatches(t *testing.T, use fixture.Carrier, before func()) *[]string {
	t.Helper()
	var noted []string
	w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		ours := r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/"+use.Resource+"/") &&
			r.Header.Get("Content-Type") == string(types.JSONPatchType)
		if !ours {
			next.ServeHTTP(answer, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		operation := ""
		for _, op := range []string{"add", "remove"} {
			if strings.Contains(string(body), fmt.Sprintf(`{"op":%q,"path":"/metadata/finalizers`, op)) {
				operation = op
			}
		}
		if operation != "" && len(noted) == 0 {
			before()
		}
		seen := &codeWriter{ResponseWriter: answer, code: http.StatusOK}
		next.ServeHTTP(seen, r)
		if operation != "" {
			noted = append(noted, fmt.Sprint(operation, " ", seen.code))
		}
	})
	return &noted
}

// codeWriter notes the code of an answer.
type codeWriter struct {
	http.ResponseWriter

	code int
}

// WriteHeader notes the code.
func (w *codeWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

// The finalizer is in place before the first handler runs. So an object that is deleted meanwhile does not go without its delete handler.
func TestTheFinalizerIsAddedBeforeAHandlerRuns(t *testing.T) {
	for _, use := range fixture.Carriers() {
		t.Run("record in the "+use.Name, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				one, during := use.Object("one"), []string(nil)
				w.Start(func(*einmaltest.Process) *einmal.Operator {
					op := fixture.NewOperator()
					kind := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", use.Kind))
					kind.OnCreate("make", func(context.Context, *einmal.Change[unstructured.Unstructured]) error {
						during = fixture.Read(w, use.Object("one")).GetFinalizers()
						return nil
					})
					kind.OnDelete("unmake", fixture.Nothing[unstructured.Unstructured])
					return op
				})
				w.Create(one)
				w.Advance(time.Minute)
				if diff := cmp.Diff([]string{fixture.Identity + "/finalizer"}, during); diff != "" {
					t.Errorf("finalizers while the handler runs (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A deletion that arrives just before the request that adds the finalizer: the API server refuses that request, and it is not
// sent again. An object that was never handled is left alone; one that was handled before gets its delete handler.
func TestNoFinalizerIsAddedToAnObjectThatIsBeingDeleted(t *testing.T) { //nolint:gocognit // One story, told row by row.
	for _, use := range fixture.Carriers() {
		for name, handled := range map[string]bool{"never handled": false, "handled before": true} {
			t.Run(name+", record in the "+use.Name, func(t *testing.T) {
				j, log := &fixture.Journal{}, fixture.NewLog(t)
				virtually(t, log, func(op *einmal.Operator) { use.Declare(op, fixture.Plan{Journal: j, OnDelete: true}) }, func(t *testing.T, w *virtualWorld) {
					one, want := use.Object("one"), []string(nil)
					one.SetFinalizers([]string{foreignFinalizer})
					if handled {
						fixture.Must(t, w.User.Create(t.Context(), one))
						w.Pass(time.Minute)
						want = []string{"make (create, attempt 1)", "unmake (delete, attempt 1)"}
					}
					patches := w.finalizerPatches(t, use, func() { fixture.Must(t, w.User.Delete(t.Context(), use.Object("one"))) })
					if handled {
						w.merge(t, one, `{"metadata":{"finalizers":["`+foreignFinalizer+`"]}}`)
					} else {
						fixture.Must(t, w.User.Create(t.Context(), one))
					}
					w.Pass(time.Hour)
					if diff := cmp.Diff([]string{"add 422"}, *patches); diff != "" {
						t.Errorf("finalizer requests (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff(want, j.Of("one")); diff != "" {
						t.Errorf("calls (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// A finalizer that was to be removed during an outage, since the object did not match any more, stays when the object matches
// again before the outage ends.
func TestAFinalizerIsNotRemovedFromAnObjectThatMatchesAgain(t *testing.T) {
	use, j := fixture.StatusCarrier(), &fixture.Journal{}
	virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnDelete("unmake", fixture.Done(j, "unmake"), einmal.Labels("team", einmal.Equals("a")))
	}, func(t *testing.T, w *virtualWorld) {
		one := use.Object("one")
		one.SetLabels(map[string]string{"team": "a"})
		fixture.Must(t, w.User.Create(t.Context(), one))
		w.Pass(time.Minute)
		mend := w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Header.Get("Content-Type") == string(types.JSONPatchType) {
				refuse(answer, http.StatusInternalServerError, "InternalError")
				return
			}
			next.ServeHTTP(answer, r)
		})
		w.merge(t, one, `{"metadata":{"labels":{"team":"b"}}}`)
		w.Pass(time.Minute)
		w.merge(t, one, `{"metadata":{"labels":{"team":"a"}}}`)
		w.Pass(time.Minute)
		mend()
		patches := w.finalizerPatches(t, use, func() {})
		w.Pass(time.Hour)
		if len(*patches) > 0 {
			t.Errorf("finalizer requests: %q, want none", *patches)
		}
		fixture.Must(t, w.User.Delete(t.Context(), one))
		w.Pass(time.Minute)
		if diff := cmp.Diff([]string{"unmake 1"}, j.Of("one")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// The operator records that the deletion is done before it removes the finalizer. No delete handler runs again after a crash between the two or
// after both, and none while another finalizer keeps the object.
func TestACrashWhenTheFinalizerGoesRepeatsNoDeleteHandler(t *testing.T) {
	status, annotation := fixture.Carriers()[0], fixture.Carriers()[1]
	for _, test := range []struct {
		use   fixture.Carrier
		crash simulation.Kind
		n     int // which patch of the object removes the finalizer
	}{{status, simulation.CrashBefore, 2}, {status, simulation.CrashAfter, 2}, {annotation, simulation.CrashAfter, 3}} {
		t.Run(fmt.Sprintf("record in the %s, %s", test.use.Name, test.crash), func(t *testing.T) {
			j := &fixture.Journal{}
			virtually(t, fixture.NewLog(t), func(op *einmal.Operator) { test.use.Declare(op, fixture.Plan{Journal: j, OnDelete: true}) }, func(t *testing.T, w *virtualWorld) {
				one := test.use.Object("one")
				one.SetFinalizers([]string{foreignFinalizer})
				fixture.Must(t, w.User.Create(t.Context(), one))
				w.Pass(time.Minute)
				fixture.Must(t, w.User.Delete(t.Context(), one))
				w.Pass(time.Hour)
				if n := w.Processes(); n != 2 {
					t.Errorf("%d processes, want one that crashes and another one", n)
				}
				fixture.Must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
				if diff := cmp.Diff([]string{foreignFinalizer}, one.GetFinalizers()); diff != "" {
					t.Errorf("finalizers (-want +got):\n%s", diff)
				}
			}, simulation.Fault{Kind: test.crash, At: simulation.Point{
				What: "patch " + test.use.Resource + "." + fixture.Group + " default/one", N: test.n,
			}})
			if diff := cmp.Diff([]string{"make (create, attempt 1)", "unmake (delete, attempt 1)"}, j.Of("one")); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// When a save before the end of a reconciliation shows that the object is being deleted or no longer matches, the remaining handlers are cancelled.
func TestRemainingHandlersDoNotRunForAnObjectThatHasChanged(t *testing.T) {
	const overwritten = `{"status":{"records":null}}`
	for name, change := range map[string]func(t *testing.T, w *virtualWorld, one *unstructured.Unstructured){
		"deleted": func(t *testing.T, w *virtualWorld, one *unstructured.Unstructured) {
			t.Helper()
			fixture.Must(t, w.User.Delete(t.Context(), one))
		},
		"deleted, and a conflict": func(t *testing.T, w *virtualWorld, one *unstructured.Unstructured) {
			t.Helper()
			fixture.Must(t, w.User.Delete(t.Context(), one), w.User.Status().Patch(t.Context(), one, client.RawPatch(types.MergePatchType, []byte(overwritten))))
		},
		"another filter result": func(t *testing.T, w *virtualWorld, one *unstructured.Unstructured) {
			t.Helper()
			w.merge(t, one, `{"metadata":{"labels":{"team":"b"}}}`)
		},
		"another filter result, and a conflict": func(t *testing.T, w *virtualWorld, one *unstructured.Unstructured) {
			t.Helper()
			w.merge(t, one, `{"metadata":{"labels":{"team":"b"}}}`)
			fixture.Must(t, w.User.Status().Patch(t.Context(), one, client.RawPatch(types.MergePatchType, []byte(overwritten))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			j, use := &fixture.Journal{}, fixture.StatusCarrier()
			var meanwhile func()
			virtually(t, fixture.NewLog(t), func(op *einmal.Operator) {
				widgets := einmal.For[fixture.Widget](op)
				widgets.OnUpdate("first", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
					j.Add("one", "first")
					meanwhile()
					// Einmal saves the result of the step while the handler still runs.
					step := einmal.Step(ctx, c, "save", func(context.Context) error { return nil })
					return errors.Join(step, fixture.Pause(ctx, 2*time.Second))
				}, einmal.Fields("spec.size"))
				widgets.OnUpdate("second", fixture.Done(j, "second"), einmal.Fields("spec.size"), einmal.Labels("team", einmal.Equals("a")))
			}, func(t *testing.T, w *virtualWorld) {
				one := use.Object("one")
				one.SetLabels(map[string]string{"team": "a"})
				one.SetFinalizers([]string{foreignFinalizer})
				fixture.Must(t, w.User.Create(t.Context(), one))
				w.Pass(time.Minute)
				meanwhile = func() { change(t, w, use.Object("one")) }
				w.merge(t, one, `{"spec":{"size":2}}`)
				w.Pass(time.Hour)
			})
			if diff := cmp.Diff([]string{"first"}, j.Of("one")); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
