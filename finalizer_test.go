package einmal_test

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
)

// foreignFinalizer is a finalizer that stays in these tests.
const foreignFinalizer = "others.example.com/hold"

// finalizerPatches notes the finalizer requests of the operator, each as the operation and the answer's code. Before is called
// ahead of the first one.
func (w *virtualWorld) finalizerPatches(t *testing.T, use carrier, before func()) *[]string {
	t.Helper()
	var noted []string
	w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
		ours := r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/"+use.resource+"/") &&
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
	for _, use := range carriers() {
		t.Run("record in the "+use.name, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				one, during := use.object("one"), []string(nil)
				w.Start(func(*einmaltest.Process) *einmal.Operator {
					op := newTestOperator()
					kind := einmal.For[unstructured.Unstructured](op, einmal.GVK(testGroup, "v1", use.kind))
					kind.OnCreate("make", func(context.Context, *einmal.Change[unstructured.Unstructured]) error {
						during = read(w, use.object("one")).GetFinalizers()
						return nil
					})
					kind.OnDelete("unmake", nothing[unstructured.Unstructured])
					return op
				})
				w.Create(one)
				w.Advance(time.Minute)
				if diff := cmp.Diff([]string{testIdentity + "/finalizer"}, during); diff != "" {
					t.Errorf("finalizers while the handler runs (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A deletion that arrives just before the request that adds the finalizer: the API server refuses that request, and it is not
// sent again. An object that was never handled is left alone; one that was handled before gets its delete handler.
func TestNoFinalizerIsAddedToAnObjectThatIsBeingDeleted(t *testing.T) { //nolint:gocognit // One story, told row by row.
	for _, use := range carriers() {
		for name, handled := range map[string]bool{"never handled": false, "handled before": true} {
			t.Run(name+", record in the "+use.name, func(t *testing.T) {
				j, log := &journal{}, testLog(t)
				virtually(t, log, func(op *einmal.Operator) { use.declare(op, plan{journal: j, onDelete: true}) }, func(t *testing.T, w *virtualWorld) {
					one, want := use.object("one"), []string(nil)
					one.SetFinalizers([]string{foreignFinalizer})
					if handled {
						must(t, w.User.Create(t.Context(), one))
						w.Pass(time.Minute)
						want = []string{"make (create, attempt 1)", "unmake (delete, attempt 1)"}
					}
					patches := w.finalizerPatches(t, use, func() { must(t, w.User.Delete(t.Context(), use.object("one"))) })
					if handled {
						w.merge(t, one, `{"metadata":{"finalizers":["`+foreignFinalizer+`"]}}`)
					} else {
						must(t, w.User.Create(t.Context(), one))
					}
					w.Pass(time.Hour)
					if diff := cmp.Diff([]string{"add 422"}, *patches); diff != "" {
						t.Errorf("finalizer requests (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff(want, j.of("one")); diff != "" {
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
	use, j := typedCarrier(), &journal{}
	virtually(t, testLog(t), func(op *einmal.Operator) {
		einmal.For[Widget](op).OnDelete("unmake", done(j, "unmake"), einmal.Labels("team", einmal.Equals("a")))
	}, func(t *testing.T, w *virtualWorld) {
		one := use.object("one")
		one.SetLabels(map[string]string{"team": "a"})
		must(t, w.User.Create(t.Context(), one))
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
		must(t, w.User.Delete(t.Context(), one))
		w.Pass(time.Minute)
		if diff := cmp.Diff([]string{"unmake 1"}, j.of("one")); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// The operator records that the deletion is done before it removes the finalizer. No delete handler runs again after a crash between the two or
// after both, and none while another finalizer keeps the object.
func TestACrashWhenTheFinalizerGoesRepeatsNoDeleteHandler(t *testing.T) {
	status, annotation := carriers()[0], carriers()[1]
	for _, test := range []struct {
		use   carrier
		crash simulation.Kind
		n     int // which patch of the object removes the finalizer
	}{{status, simulation.CrashBefore, 2}, {status, simulation.CrashAfter, 2}, {annotation, simulation.CrashAfter, 3}} {
		t.Run(fmt.Sprintf("record in the %s, %s", test.use.name, test.crash), func(t *testing.T) {
			j := &journal{}
			virtually(t, testLog(t), func(op *einmal.Operator) { test.use.declare(op, plan{journal: j, onDelete: true}) }, func(t *testing.T, w *virtualWorld) {
				one := test.use.object("one")
				one.SetFinalizers([]string{foreignFinalizer})
				must(t, w.User.Create(t.Context(), one))
				w.Pass(time.Minute)
				must(t, w.User.Delete(t.Context(), one))
				w.Pass(time.Hour)
				if n := w.Processes(); n != 2 {
					t.Errorf("%d processes, want one that crashes and another one", n)
				}
				must(t, w.User.Get(t.Context(), client.ObjectKeyFromObject(one), one))
				if diff := cmp.Diff([]string{foreignFinalizer}, one.GetFinalizers()); diff != "" {
					t.Errorf("finalizers (-want +got):\n%s", diff)
				}
			}, simulation.Fault{Kind: test.crash, At: simulation.Point{
				What: "patch " + test.use.resource + "." + testGroup + " default/one", N: test.n,
			}})
			if diff := cmp.Diff([]string{"make (create, attempt 1)", "unmake (delete, attempt 1)"}, j.of("one")); diff != "" {
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
			must(t, w.User.Delete(t.Context(), one))
		},
		"deleted, and a conflict": func(t *testing.T, w *virtualWorld, one *unstructured.Unstructured) {
			t.Helper()
			must(t, w.User.Delete(t.Context(), one), w.User.Status().Patch(t.Context(), one, client.RawPatch(types.MergePatchType, []byte(overwritten))))
		},
		"another filter result": func(t *testing.T, w *virtualWorld, one *unstructured.Unstructured) {
			t.Helper()
			w.merge(t, one, `{"metadata":{"labels":{"team":"b"}}}`)
		},
		"another filter result, and a conflict": func(t *testing.T, w *virtualWorld, one *unstructured.Unstructured) {
			t.Helper()
			w.merge(t, one, `{"metadata":{"labels":{"team":"b"}}}`)
			must(t, w.User.Status().Patch(t.Context(), one, client.RawPatch(types.MergePatchType, []byte(overwritten))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			j, use := &journal{}, typedCarrier()
			var meanwhile func()
			virtually(t, testLog(t), func(op *einmal.Operator) {
				widgets := einmal.For[Widget](op)
				widgets.OnUpdate("first", func(ctx context.Context, c *einmal.Change[Widget]) error {
					j.add("one", "first")
					meanwhile()
					// Einmal saves the result of the step while the handler still runs.
					step := einmal.Step(ctx, c, "save", func(context.Context) error { return nil })
					return errors.Join(step, pause(ctx, 2*time.Second))
				}, einmal.Fields("spec.size"))
				widgets.OnUpdate("second", done(j, "second"), einmal.Fields("spec.size"), einmal.Labels("team", einmal.Equals("a")))
			}, func(t *testing.T, w *virtualWorld) {
				one := use.object("one")
				one.SetLabels(map[string]string{"team": "a"})
				one.SetFinalizers([]string{foreignFinalizer})
				must(t, w.User.Create(t.Context(), one))
				w.Pass(time.Minute)
				meanwhile = func() { change(t, w, use.object("one")) }
				w.merge(t, one, `{"spec":{"size":2}}`)
				w.Pass(time.Hour)
			})
			if diff := cmp.Diff([]string{"first"}, j.of("one")); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
