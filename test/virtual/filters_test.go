package virtual_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// The story of the tenants, footgun of Kopf's field handlers: a field handler takes creation for a change.
func TestAFieldHandlerDoesNotTakeACreationForAChange(t *testing.T) {
	j := &fixture.Journal{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			fixture.Provision(einmal.For[fixture.Widget](op), j)
			return op
		})
		tenant := fixture.NewWidget("acme")
		tenant.Spec.Color = "standard"
		w.Create(tenant)
		w.Advance(time.Minute)
		expectPhase(w, tenant, "ready")
		w.Restart()
		w.Advance(time.Minute)
		w.Patch(tenant, `{"spec":{"color":"large"}}`)
		w.Advance(time.Minute)
		expectPhase(w, tenant, "on plan large")
	})
	if diff := cmp.Diff([]string{"provision", `plan from "standard" to "large"`}, j.Of("acme")); diff != "" {
		t.Error(diff)
	}
}

func expectPhase(w *einmaltest.World, widget *fixture.Widget, want string) {
	w.Helper()
	if w.Get(widget); widget.Status.Phase != want {
		w.Errorf("the phase is %q, want %q", widget.Status.Phase, want)
	}
}

// Scenario 48: zero writes, and zero logs in whatever detail, also of the end. Nor is there a watermark: an object without a
// record is nothing special.
func TestAnObjectThatMatchesNoHandlerIsNotLogged(t *testing.T) {
	log := fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) { fixture.OfTeam(einmal.For[fixture.Widget](op), &fixture.Journal{}) }, func(t *testing.T, w *virtualWorld) {
		theirs := fixture.NewWidget("theirs")
		if err := w.User.Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		w.restart(func() {})
		w.Pass(30 * time.Minute)
		if err := w.User.Patch(t.Context(), theirs, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"size":7}}`))); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Minute)
		if err := w.User.Delete(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Hour)
		if made := w.Writes(); len(made) != 0 {
			t.Errorf("writes: %v", made)
		}
	})
	if strings.Contains(log.String(), "theirs") {
		t.Error("it is logged")
	}
}

// An object that existed when the process started may have been handled by an earlier process, also if it starts to match later. An object that
// was created since was not.
func TestExistingObjectsMayBeRepetitions(t *testing.T) {
	j := &fixture.Journal{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		made := func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			fixture.OfTeam(einmal.For[fixture.Widget](op), j)
			return op
		}
		w.Install(made)
		before, after := fixture.NewWidget("before"), fixture.NewWidget("after")
		w.Create(before)
		w.Advance(time.Minute)
		w.Start(made)
		w.Advance(time.Minute)
		w.Create(after)
		for _, widget := range []*fixture.Widget{before, after} {
			w.Advance(time.Minute)
			w.Patch(widget, `{"metadata":{"labels":{"team":"a"}}}`)
		}
		w.Advance(time.Minute)
	})
	if got := j.Of("before"); !slices.Equal(got, []string{"make (create, attempt 1) maybe repeated"}) {
		t.Errorf("before: %q", got)
	}
	if got := j.Of("after"); !slices.Equal(got, []string{"make (create, attempt 1)"}) {
		t.Errorf("after: %q", got)
	}
}

// careless declares a filter that panics for an object with a color and without tags.
func careless(op *einmal.Operator) {
	einmal.For[fixture.Widget](op).OnUpdate("tagged", fixture.Nothing[fixture.Widget], einmal.When(func(w *fixture.Widget) bool { return w.Spec.Color == "" || w.Spec.Tags[0] != "" }))
}

// Scenario 47: a panic in a filter is logged with the object, the handler and the stack, less and less often.
func TestAFilterThatPanicsIsLogged(t *testing.T) {
	log := fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) { careless(op) }, func(t *testing.T, w *virtualWorld) {
		bad := fixture.NewWidget("bad")
		bad.Spec.Color = "red"
		if err := w.User.Create(t.Context(), bad); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Hour)
	})
	if told := log.Count("msg~reconcile failed"); told < 10 || told > 60 {
		t.Errorf("told %d times in an hour", told)
	}
	if log.Count("msg~reconcile failed", "object=default/bad", `error~handler "tagged"`, "error~index out of range") == 0 {
		t.Error("the log does not name the object, the handler and the error")
	}
	if log.Count("stack~filters_test.go") == 0 {
		t.Error("the log has no stack")
	}
}

// A value that does not fit fails the handler for good, and the error names the field.
func TestAFieldThatDoesNotFitIsNamed(t *testing.T) {
	log := fixture.NewLog(t)
	virtually(t, log, func(op *einmal.Operator) {
		gadgets := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", "Gadget"))
		einmal.OnField(gadgets, "color", "spec.color",
			func(context.Context, *einmal.Change[unstructured.Unstructured], int, int) error { return nil }, einmal.AlsoAtCreation())
	}, func(t *testing.T, w *virtualWorld) {
		red := fixture.NewGadget("red", 1)
		_ = unstructured.SetNestedField(red.Object, "red", "spec", "color")
		if err := w.User.Create(t.Context(), red); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Hour)
		if made := w.Calls(); len(made) != 1 {
			t.Errorf("calls: %v", made)
		}
	})
	if log.Count("error~field spec.color: cannot read its value now as int") == 0 {
		t.Error("the log does not name the field")
	}
}

// A watermark is kept for kinds with a handler that matches every object. There a record that is wiped while the operator is down counts as
// lost, and no create handler runs, whatever its filter. For other kinds the object counts as created, which may be a repetition.
func TestLostRecordsOfFilteredKinds(t *testing.T) {
	for name, test := range map[string]struct {
		everything bool
		want       []string
	}{
		"a handler is for every object":    {true, []string{"make (create, attempt 1)", "greet (resume, attempt 1) maybe repeated"}},
		"all handlers are for some of all": {false, []string{"make (create, attempt 1)", "make (create, attempt 1) maybe repeated"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := &fixture.Journal{}
			einmaltest.Run(t, func(w *einmaltest.World) {
				w.Start(func(*einmaltest.Process) *einmal.Operator {
					op := fixture.NewOperator()
					widgets := einmal.For[fixture.Widget](op)
					fixture.OfTeam(widgets, j)
					if test.everything {
						widgets.OnUpdate("follow", fixture.Nothing[fixture.Widget])
					}
					return op
				})
				w.Advance(time.Second)
				ours := &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ours", Labels: map[string]string{"team": "a"}}}
				w.Create(ours)
				w.Advance(30 * time.Minute)
				w.Stop()
				if err := w.Client().Status().Patch(w.Context(), ours, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"records":null}}`))); err != nil {
					w.Fatal(err)
				}
				w.Restart()
				w.Advance(time.Minute)
			})
			if diff := cmp.Diff(test.want, j.Of("ours")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
