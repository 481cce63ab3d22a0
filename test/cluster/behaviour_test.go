package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// TestHandlersOnARealControlPlane shows what handlers can do and which faults they survive, on a real API server.
func TestHandlersOnARealControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, test := range map[string]func(*testing.T){
		"a panic is contained, and an error retried (scenario 22)":            w.panicIsContained,
		"a permanent failure is not retried (scenario 23)":                    w.permanentFailure,
		"a blocked deletion, and the way out (scenario 18)":                   w.blockedDeletion,
		"a stop lets running handlers finish":                                 w.stopFinishes,
		"a concurrent foreign edit survives":                                  w.foreignEdit,
		"a foreign edit of the very record is folded again":                   w.foreignRecord,
		"what the API server refuses is a failure, told once (scenario 92)":   w.refusedStatus,
		"a resume handler whose change is refused is tried again":             w.refusedResume,
		"an outcome that cannot be written is not forgotten":                  w.unsavedOutcome,
		"a handler's own change does not call it (scenario 61)":               w.ownChange,
		"a copied manifest is a new object":                                   w.copiedManifest,
		"two operators share a kind (scenario 99)":                            w.twoOperators,
		"a field that the schema does not have is reported (scenario 60)":     w.droppedField,
		"two handlers write one status":                                       w.twoHandlersOneStatus,
		"children are applied, foreign objects and owners refused":            w.children,
		"a child that is deleted comes back, and an index is complete":        w.childComesBack,
		"children that are not wanted are deleted, and what belongs to them":  w.childrenPruned,
		"an outcome is saved while a long handler runs":                       w.flushed,
		"a field handler does not take a creation for a change (scenario 38)": w.fieldAtCreation,
		"what no handler is for is left alone (scenarios 48, 49)":             w.leftAlone,
		"an edit wakes a back-off, and Old is typed (scenarios 34, 4)":        w.editWakes,
	} {
		t.Run(name, test)
	}
}

// widgets runs an operator with handlers for widgets and returns its log.
func (w *world) widgets(t *testing.T, identity string, declare func(*einmal.Kind[fixture.Widget])) (stop func(), log *fixture.Log) {
	t.Helper()
	log = fixture.NewLog(t)
	op := einmal.New(identity, einmal.Scheme(fixture.AddKinds), einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	declare(einmal.For[fixture.Widget](op))
	return w.run(t, op, w.account), log
}

// widget creates a widget through the API and returns it.
func (w *world) widget(t *testing.T, name string) {
	t.Helper()
	w.create(t, fixture.StatusCarrier(), name)
	t.Cleanup(func() {
		if !t.Failed() {
			w.delete(t, fixture.StatusCarrier(), name)
		}
	})
}

// phase waits until the widget's status has this phase.
func (w *world) phase(t *testing.T, name, want string) *unstructured.Unstructured {
	t.Helper()
	var found *unstructured.Unstructured
	cluster.Eventually(t, fmt.Sprintf("phase %q of %s", want, name), func(ctx context.Context) (err error) {
		if found, err = w.get(ctx, fixture.StatusCarrier(), name); err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(found.Object, "status", "phase"); got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	return found
}

func (w *world) panicIsContained(t *testing.T) {
	var others atomic.Int32
	stop, log := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("panics", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			if c.Attempt < 2 {
				c.Object.Status.Phase = "half-done"
				panic("a bug")
			}
			c.Object.Status.Phase = fmt.Sprintf("attempt %d", c.Attempt)
			return nil
		})
		widgets.OnCreate("other", func(context.Context, *einmal.Change[fixture.Widget]) error {
			others.Add(1)
			return nil
		})
	})
	w.widget(t, "panics")
	w.phase(t, "panics", "attempt 2")
	if others.Load() != 1 {
		t.Errorf("the other handler ran %d times, want once", others.Load())
	}
	if log.Count("error~panic: a bug", "stack~behaviour_test.go") == 0 {
		t.Error("the log has not both the panic and its stack")
	}
	stop()
}

func (w *world) permanentFailure(t *testing.T) {
	var calls atomic.Int32
	declare := func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("never", func(context.Context, *einmal.Change[fixture.Widget]) error {
			calls.Add(1)
			return einmal.Permanent(errors.New("no such plan"))
		}, einmal.Fields("spec.size"))
		widgets.OnCreate("other", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Status.Phase = "other went on"
			return nil
		})
	}
	stop, _ := w.widgets(t, fixture.Identity, declare)
	w.widget(t, "never")
	found := w.phase(t, "never", "other went on")
	if text := fixture.StatusCarrier().Record(found); !strings.Contains(text, "no such plan") {
		t.Errorf("the record does not tell the reason: %s", text)
	}
	stop()
	stop, _ = w.widgets(t, fixture.Identity, declare)
	w.quiet(t, fixture.StatusCarrier())
	if calls.Load() != 1 {
		t.Errorf("it was called %d times, want once", calls.Load())
	}
	w.edit(t, fixture.StatusCarrier(), "never", "size", int64(2))
	cluster.Until(t, "a change of what it looks at runs it again", func() bool { return calls.Load() == 2 })
	stop()
}

func (w *world) stopFinishes(t *testing.T) {
	running, finish := make(chan bool), make(chan bool)
	stop, _ := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("long", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			running <- true
			<-finish
			c.Object.Status.Phase = fmt.Sprintf("finished, context: %v", ctx.Err())
			return nil
		})
		widgets.OnCreate("next", func(context.Context, *einmal.Change[fixture.Widget]) error {
			t.Error("a handler was started after the stop")
			return nil
		})
	})
	w.widget(t, "long")
	<-running
	go func() {
		// By the time that the handler goes on, the stop has been asked for.
		time.AfterFunc(300*time.Millisecond, func() { close(finish) })
	}()
	stop()
	w.phase(t, "long", "finished, context: <nil>")
	var calls atomic.Int32
	stop, _ = w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("long", func(context.Context, *einmal.Change[fixture.Widget]) error {
			t.Error("it was called again")
			return nil
		})
		widgets.OnCreate("next", func(context.Context, *einmal.Change[fixture.Widget]) error {
			calls.Add(1)
			return nil
		})
	})
	cluster.Until(t, "the handler that had not started runs", func() bool { return calls.Load() == 1 })
	w.quiet(t, fixture.StatusCarrier())
	stop()
}

func (w *world) ownChange(t *testing.T) {
	var updates, watched atomic.Int32
	stop, _ := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnUpdate("grow", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			updates.Add(1)
			c.Object.Spec.Size++
			c.Object.Labels = map[string]string{"size": fmt.Sprint(c.Object.Spec.Size)}
			return nil
		})
		widgets.OnUpdate("watch", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			watched.Add(1)
			c.Object.Status.Phase = fmt.Sprint(c.Diff)
			return nil
		}, einmal.Fields("metadata.labels"))
	})
	w.widget(t, "grows")
	w.stored(t, "grows", `"base"`) // What comes later is a change.
	w.edit(t, fixture.StatusCarrier(), "grows", "size", int64(5))
	w.phase(t, "grows", "[{add [metadata labels] <nil> map[size:6]}]")
	w.quiet(t, fixture.StatusCarrier())
	if updates.Load() != 1 || watched.Load() != 1 {
		t.Errorf("called %d and %d times, want once each", updates.Load(), watched.Load())
	}
	stop()
}

func (w *world) copiedManifest(t *testing.T) {
	j := &fixture.Journal{}
	use := fixture.Carriers()[1]
	stop := w.operator(t, use, fixture.Plan{Journal: j})
	w.create(t, use, "original")
	w.called(t, use, j, "original", "make (create, attempt 1)")
	found, err := w.get(t.Context(), use, "original")
	if err != nil {
		t.Fatal(err)
	}
	found.SetName("copy")
	found.SetUID("")
	found.SetResourceVersion("")
	if err := w.Create(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	w.called(t, use, j, "copy", "make (create, attempt 1)")
	stop()
}

func (w *world) twoOperators(t *testing.T) {
	var stops []func()
	for _, identity := range []string{"one.einmal.dev", "two.einmal.dev"} {
		stop, _ := w.widgets(t, identity, func(widgets *einmal.Kind[fixture.Widget]) {
			widgets.OnCreate("make", func(context.Context, *einmal.Change[fixture.Widget]) error { return nil })
			widgets.OnDelete("unmake", func(context.Context, *einmal.Change[fixture.Widget]) error { return nil })
		})
		stops = append(stops, stop)
	}
	w.create(t, fixture.StatusCarrier(), "shared")
	cluster.Eventually(t, "both have a record and a finalizer", func(ctx context.Context) error {
		found, err := w.get(ctx, fixture.StatusCarrier(), "shared")
		if err != nil {
			return err
		}
		records, _, _ := unstructured.NestedMap(found.Object, "status", "records")
		finalizers := found.GetFinalizers()
		slices.Sort(finalizers)
		if len(records) != 2 || !slices.Equal(finalizers, []string{"one.einmal.dev/finalizer", "two.einmal.dev/finalizer"}) {
			return fmt.Errorf("records %v, finalizers %q", records, finalizers)
		}
		return nil
	})
	w.delete(t, fixture.StatusCarrier(), "shared")
	for _, stop := range stops {
		stop()
	}
}

func (w *world) droppedField(t *testing.T) {
	log := fixture.NewLog(t)
	op := einmal.New(fixture.Identity, einmal.Logger(slog.New(slog.NewTextHandler(log, nil))))
	gadgets := einmal.For[unstructured.Unstructured](op, einmal.GVK(fixture.Group, "v1", "Gadget"))
	gadgets.OnCreate("typo", func(_ context.Context, c *einmal.Change[unstructured.Unstructured]) error {
		return unstructured.SetNestedField(c.Object.Object, "x", "status", "phrase")
	})
	stop := w.run(t, op, w.account)
	use := fixture.Carriers()[1]
	for _, name := range []string{"typo-1", "typo-2"} {
		w.create(t, use, name)
	}
	cluster.Until(t, "the dropped field is reported", func() bool { return log.Count("warning~unknown field", "warning~status.phrase", "handler=typo") > 0 })
	w.quiet(t, use)
	if n := log.Count("warning~unknown field", "warning~status.phrase", "handler=typo"); n != 1 {
		t.Errorf("reported %d times, want once", n)
	}
	stop()
}

func (w *world) editWakes(t *testing.T) {
	var old atomic.Value
	stop, _ := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnUpdate("resize", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			before, known := c.Old()
			old.Store(fmt.Sprintf("%v %s/%s %t %d", known, before.Namespace, before.Name, before.UID == c.Object.UID, before.Spec.Size))
			if c.Object.Spec.Size < 10 {
				return fmt.Errorf("size %d is too small", c.Object.Spec.Size)
			}
			c.Object.Status.Phase = fmt.Sprintf("attempt %d", c.Attempt)
			return nil
		}, einmal.Backoff(time.Hour, time.Hour)) // Only the edit can trigger the second attempt.
	})
	w.widget(t, "small")
	w.stored(t, "small", `"base"`) // What comes later is a change.
	w.edit(t, fixture.StatusCarrier(), "small", "size", int64(2))
	cluster.Until(t, "the first attempt", func() bool { return old.Load() != nil })
	begun := time.Now()
	w.edit(t, fixture.StatusCarrier(), "small", "size", int64(20))
	found := w.phase(t, "small", "attempt 2")
	if want := "true default/small true 1"; old.Load() != want {
		t.Errorf("Old: %v, want %s", old.Load(), want)
	}
	t.Logf("woken after %s at %s", time.Since(begun), found.GetResourceVersion())
	stop()
}
