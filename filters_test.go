package einmal_test

import (
	"context"
	"fmt"
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
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// provision declares the two handlers of the story of the tenants: one provisions, the other answers a change of plan, and each
// sets the phase. In Kopf the second one ran at creation too, and what it wrote hid what the first had written.
func provision(widgets *einmal.Kind[Widget], j *journal) {
	widgets.OnCreate("provision", func(_ context.Context, c *einmal.Change[Widget]) error {
		j.add(c.Object.Name, "provision")
		c.Object.Status.Phase = "ready"
		return nil
	})
	einmal.OnField(widgets, "plan", "spec.color", func(_ context.Context, c *einmal.Change[Widget], before, after string) error {
		j.add(c.Object.Name, fmt.Sprintf("plan from %q to %q", before, after))
		c.Object.Status.Phase = "on plan " + after
		return nil
	})
}

// The story of the tenants, footgun of Kopf's field handlers: a field handler takes creation for a change.
func TestAFieldHandlerDoesNotTakeACreationForAChange(t *testing.T) {
	j := &journal{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := newTestOperator()
			provision(einmal.For[Widget](op), j)
			return op
		})
		tenant := widgetOf("acme")
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
	if diff := cmp.Diff([]string{"provision", `plan from "standard" to "large"`}, j.of("acme")); diff != "" {
		t.Error(diff)
	}
}

func expectPhase(w *einmaltest.World, widget *Widget, want string) {
	w.Helper()
	if w.Get(widget); widget.Status.Phase != want {
		w.Errorf("the phase is %q, want %q", widget.Status.Phase, want)
	}
}

// fieldAtCreation is the same story on the real control plane.
func (w *world) fieldAtCreation(t *testing.T) {
	j := &journal{}
	stop, _ := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) { provision(widgets, j) })
	w.Kubectl(t, strings.Replace(typedCarrier().manifest("acme", 1), "size: 1", "size: 1, color: standard", 1), "create", "-f", "-")
	w.called(t, typedCarrier(), j, "acme", "provision")
	w.phase(t, "acme", "ready")
	w.edit(t, typedCarrier(), "acme", "color", "large")
	w.called(t, typedCarrier(), j, "acme", "provision", `plan from "standard" to "large"`)
	stop()
	w.delete(t, typedCarrier(), "acme")
}

// leftAlone shows scenarios 48 and 49 on the real control plane.
func (w *world) leftAlone(t *testing.T) {
	j := &journal{}
	stop, _ := w.widgets(t, testIdentity, func(widgets *einmal.Kind[Widget]) { ofTeam(widgets, j) })
	use := typedCarrier()
	w.spend(t, use, "a life that no handler is for (scenario 48)", 0, func() {
		w.create(t, use, "theirs")
		w.edit(t, use, "theirs", "size", int64(2))
		w.edit(t, use, "theirs", "label", "b")
		w.delete(t, use, "theirs")
	})
	w.create(t, use, "ours")
	w.spend(t, use, "it starts to match (scenario 49): finalizer and record", 2, func() {
		w.edit(t, use, "ours", "label", "a")
		w.called(t, use, j, "ours", "make (create, attempt 1)")
	})
	w.edit(t, use, "ours", "size", int64(2))
	want := []string{"make (create, attempt 1)", "resize (update, attempt 1)"}
	w.called(t, use, j, "ours", want...)
	w.edit(t, use, "ours", "label", "b")
	cluster.Eventually(t, "the finalizer goes with the label", func(ctx context.Context) error {
		found, err := w.get(ctx, use, "ours")
		if err == nil && len(found.GetFinalizers()) > 0 {
			err = fmt.Errorf("finalizers %q", found.GetFinalizers())
		}
		return err
	})
	w.delete(t, use, "ours")
	if got := j.of("ours"); !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	stop()
}

// ofTeam declares handlers for the objects of one team.
func ofTeam[T any, P interface {
	*T
	client.Object
}](kind *einmal.Kind[T], j *journal) {
	note := func(id string) einmal.HandlerFunc[T] {
		return func(_ context.Context, c *einmal.Change[T]) error {
			text := fmt.Sprintf("%s (%s, attempt %d)", id, c.Reason, c.Attempt)
			if c.MaybeRepeated {
				text += " maybe repeated"
			}
			j.add(P(c.Object).GetName(), text)
			return nil
		}
	}
	ours := einmal.Labels("team", einmal.Equals("a"))
	kind.OnCreate("make", note("make"), ours)
	kind.OnUpdate("resize", note("resize"), einmal.Fields("spec.size"), ours)
	kind.OnDelete("unmake", note("unmake"), ours)
	kind.OnResume("greet", note("greet"), ours)
}

// Scenario 48: zero writes, and zero logs in whatever detail, also of the end. Nor is there a watermark: an object without a
// record is nothing special.
func TestAnObjectThatMatchesNoHandlerIsNotLogged(t *testing.T) {
	log := testLog(t)
	virtually(t, log, func(op *einmal.Operator) { ofTeam(einmal.For[Widget](op), &journal{}) }, func(t *testing.T, w *virtualWorld) {
		theirs := widgetOf("theirs")
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
	j := &journal{}
	einmaltest.Run(t, func(w *einmaltest.World) {
		made := func(*einmaltest.Process) *einmal.Operator {
			op := newTestOperator()
			ofTeam(einmal.For[Widget](op), j)
			return op
		}
		w.Install(made)
		before, after := widgetOf("before"), widgetOf("after")
		w.Create(before)
		w.Advance(time.Minute)
		w.Start(made)
		w.Advance(time.Minute)
		w.Create(after)
		for _, widget := range []*Widget{before, after} {
			w.Advance(time.Minute)
			w.Patch(widget, `{"metadata":{"labels":{"team":"a"}}}`)
		}
		w.Advance(time.Minute)
	})
	if got := j.of("before"); !slices.Equal(got, []string{"make (create, attempt 1) maybe repeated"}) {
		t.Errorf("before: %q", got)
	}
	if got := j.of("after"); !slices.Equal(got, []string{"make (create, attempt 1)"}) {
		t.Errorf("after: %q", got)
	}
}

// careless declares a filter that panics for an object with a color and without tags.
func careless(op *einmal.Operator) {
	einmal.For[Widget](op).OnUpdate("tagged", nothing[Widget], einmal.When(func(w *Widget) bool { return w.Spec.Color == "" || w.Spec.Tags[0] != "" }))
}

// Scenario 47: a panic in a filter is logged with the object, the handler and the stack, less and less often.
func TestAFilterThatPanicsIsLogged(t *testing.T) {
	log := testLog(t)
	virtually(t, log, func(op *einmal.Operator) { careless(op) }, func(t *testing.T, w *virtualWorld) {
		bad := widgetOf("bad")
		bad.Spec.Color = "red"
		if err := w.User.Create(t.Context(), bad); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Hour)
	})
	if told := log.lines("msg~reconcile failed"); told < 10 || told > 60 {
		t.Errorf("told %d times in an hour", told)
	}
	if log.lines("msg~reconcile failed", "object=default/bad", `error~handler "tagged"`, "error~index out of range") == 0 {
		t.Error("the log does not name the object, the handler and the error")
	}
	if log.lines("stack~filters_test.go") == 0 {
		t.Error("the log has no stack")
	}
}

// A value that does not fit fails the handler for good, and the error names the field.
func TestAFieldThatDoesNotFitIsNamed(t *testing.T) {
	log := testLog(t)
	virtually(t, log, func(op *einmal.Operator) {
		gadgets := einmal.For[unstructured.Unstructured](op, einmal.GVK(testGroup, "v1", "Gadget"))
		einmal.OnField(gadgets, "color", "spec.color",
			func(context.Context, *einmal.Change[unstructured.Unstructured], int, int) error { return nil }, einmal.AlsoAtCreation())
	}, func(t *testing.T, w *virtualWorld) {
		red := gadgetOf("red", 1)
		_ = unstructured.SetNestedField(red.Object, "red", "spec", "color")
		if err := w.User.Create(t.Context(), red); err != nil {
			t.Fatal(err)
		}
		w.Pass(time.Hour)
		if made := w.Calls(); len(made) != 1 {
			t.Errorf("calls: %v", made)
		}
	})
	if log.lines("error~field spec.color: cannot read its value now as int") == 0 {
		t.Error("the log does not name the field")
	}
}

// lifeOfTeams is a life in and out of filters: created outside of them, entering, changing, leaving, coming back and going.
func lifeOfTeams[T any, P interface {
	*T
	client.Object
}](w *einmaltest.World, kind func(*einmal.Operator) (*einmal.Kind[T], sized[T]), made func(name string) client.Object) {
	outside := &registry{}
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := newTestOperator()
		declared, of := kind(op)
		ours := einmal.Labels("team", einmal.Equals("a"))
		register := func(wanted bool) einmal.HandlerFunc[T] {
			return func(_ context.Context, c *einmal.Change[T]) error { return outside.set(p, of.name(c.Object), wanted) }
		}
		declared.OnCreate("register", register(true), ours)
		declared.OnDelete("unregister", register(false), ours)
		einmal.OnField(declared, "size", "spec.size", func(_ context.Context, c *einmal.Change[T], _, after int) error {
			of.setPhase(c.Object, fmt.Sprintf("size %d", after))
			return nil
		}, einmal.AlsoAtCreation())
		einmal.OnField(declared, "red", "spec.color", func(_ context.Context, c *einmal.Change[T], before, after string) error {
			P(c.Object).SetAnnotations(map[string]string{"example.com/was": before + "-" + after})
			return nil
		}, einmal.FieldChanges("spec.color", einmal.To(einmal.Equals("red"))))
		return op
	})
	entering := made("entering")
	w.Create(entering)
	w.Advance(20 * time.Second)
	w.Patch(entering, `{"metadata":{"labels":{"team":"a"}},"spec":{"color":"blue"}}`)
	w.Advance(20 * time.Second)
	w.Patch(entering, `{"spec":{"size":2,"color":"red"}}`)
	w.Advance(20 * time.Second)
	w.Patch(entering, `{"metadata":{"labels":{"team":"b"}}}`)
	w.Advance(20 * time.Second)
	w.Patch(entering, `{"metadata":{"labels":{"team":"a"}}}`)
	w.Advance(6 * time.Minute) // Out of the filter it had no finalizer: the operator has to come back before the deletion.
	w.Delete(entering)
	w.Advance(10 * time.Minute)
	w.Outcome("registered", outside.left())
}

// Scenarios 38, 42, 48, 49: with any fault, handlers with filters and fields end in the same state.
func TestWhateverGoesWrongFiltersEndTheSame(t *testing.T) {
	t.Run("record in the status", func(t *testing.T) {
		einmaltest.Explore(t, func(w *einmaltest.World) {
			lifeOfTeams(w, declareWidgets, func(name string) client.Object { return widgetOf(name) })
		})
	})
	t.Run("record in the annotation", func(t *testing.T) {
		einmaltest.Explore(t, func(w *einmaltest.World) {
			lifeOfTeams(w, declareGadgets, func(name string) client.Object { return gadgetOf(name, 1) })
		})
	})
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
			j := &journal{}
			einmaltest.Run(t, func(w *einmaltest.World) {
				w.Start(func(*einmaltest.Process) *einmal.Operator {
					op := newTestOperator()
					widgets := einmal.For[Widget](op)
					ofTeam(widgets, j)
					if test.everything {
						widgets.OnUpdate("follow", nothing[Widget])
					}
					return op
				})
				w.Advance(time.Second)
				ours := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ours", Labels: map[string]string{"team": "a"}}}
				w.Create(ours)
				w.Advance(30 * time.Minute)
				w.Stop()
				if err := w.Client().Status().Patch(w.Context(), ours, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"records":null}}`))); err != nil {
					w.Fatal(err)
				}
				w.Restart()
				w.Advance(time.Minute)
			})
			if diff := cmp.Diff(test.want, j.of("ours")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
