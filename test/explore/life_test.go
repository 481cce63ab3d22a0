package explore_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// failures is how often creations fail at first.
const failures = 3

// lifeHandlers declares handlers with a child, an effect outside, retries and a deletion.
func lifeHandlers[T any](kind *einmal.Kind[T], of fixture.Accessors[T], p *einmaltest.Process, outside *fixture.Registry) {
	kind.OnCreate("register", func(_ context.Context, c *einmal.Change[T]) error {
		c.Event(einmal.EventNormal, "Registering", "attempt %d", c.Attempt)
		return outside.Set(p, of.Name(c.Object), true)
	})
	kind.OnCreate("configure", func(ctx context.Context, c *einmal.Change[T]) error {
		if c.Attempt <= failures {
			return einmal.RetryAfter(time.Second, errors.New("not yet"))
		}
		return of.Configure(ctx, c)
	})
	kind.OnUpdate("reconfigure", of.Configure, einmal.Fields("spec.size"))
	kind.OnDelete("unregister", func(_ context.Context, c *einmal.Change[T]) error {
		return outside.Set(p, of.Name(c.Object), false)
	})
}

// lifeOfWidgets is a life with records in the status.
func lifeOfWidgets(w *einmaltest.World) {
	outside := &fixture.Registry{}
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := fixture.NewOperator()
		widgets, of := fixture.Widgets(op)
		lifeHandlers(widgets, of, p, outside)
		return op
	})
	life(w, outside, func(name string) client.Object {
		return &fixture.Widget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: fixture.WidgetSpec{Size: 1}}
	})
}

// lifeOfGadgets is the same life with records in an annotation.
func lifeOfGadgets(w *einmaltest.World) {
	outside := &fixture.Registry{}
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := fixture.NewOperator()
		gadgets, of := fixture.Gadgets(op)
		lifeHandlers(gadgets, of, p, outside)
		return op
	})
	life(w, outside, func(name string) client.Object { return fixture.NewGadget(name, 1) })
}

// lifeOfSecrets is a life of which nothing may be recorded but keyed digests: no handler knows what was there before.
func lifeOfSecrets(w *einmaltest.World) {
	label := func(_ context.Context, c *einmal.Change[corev1.Secret]) error {
		c.Object.Labels = map[string]string{"length": strconv.Itoa(len(c.Object.Data["password"]))}
		return nil
	}
	w.Start(func(*einmaltest.Process) *einmal.Operator {
		op := fixture.NewOperator()
		secrets := einmal.For[corev1.Secret](op)
		secrets.OnCreate("label", label)
		secrets.OnUpdate("relabel", label, einmal.Fields("data"))
		secrets.OnDelete("forget", func(context.Context, *einmal.Change[corev1.Secret]) error { return nil })
		return op
	})
	made := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Data: map[string][]byte{"password": []byte("one")}}
	}
	kept, deleted := made("kept"), made("deleted")
	w.Create(kept, deleted)
	w.Advance(time.Minute)
	w.Patch(kept, `{"stringData":{"password":"three"}}`)
	w.Advance(time.Minute)
	w.Delete(deleted)
	w.Advance(10 * time.Minute)
}

// life is what a user does: create, grow, delete.
func life(w *einmaltest.World, outside *fixture.Registry, made func(name string) client.Object) {
	kept, deleted := made("kept"), made("deleted")
	w.Create(kept, deleted)
	w.Advance(time.Minute)
	w.Patch(kept, `{"spec":{"size":2}}`)
	w.Patch(deleted, `{"spec":{"size":2}}`)
	w.Advance(time.Minute)
	w.Delete(deleted)
	w.Advance(10 * time.Minute)
	w.Outcome("registered", outside.Registered())
}

// With any fault the final state is the same: external effects exist once, and recorded work is not repeated. The faults include watches that
// break or are too old, a cache that is behind the operator's own writes, and other clients that write in between (scenarios 88 and 93).
func TestWhateverGoesWrongTheEndIsTheSame(t *testing.T) {
	t.Run("record in the status", func(t *testing.T) { einmaltest.Explore(t, lifeOfWidgets) })
	t.Run("record in the annotation", func(t *testing.T) { einmaltest.Explore(t, lifeOfGadgets) })
	t.Run("keyed digests of Secrets", func(t *testing.T) { einmaltest.Explore(t, lifeOfSecrets) })
}

// A record that is lost while no process runs, of an object that had one for long, is reported as a condition. A test that wipes records expects that.
func TestWhateverGoesWrongALostRecordIsReported(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			widgets, of := fixture.Widgets(op)
			widgets.OnCreate("greet", func(context.Context, *einmal.Change[fixture.Widget]) error { return nil })
			widgets.Timer("show", 20*time.Minute, func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				phase := "shown"
				if c.Object.Status.Phase == "" {
					phase = "new"
				}
				of.SetPhase(c.Object, phase)
				return nil
			})
			return op
		})
		w.Create(&fixture.Widget{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"}})
		w.Advance(time.Hour) // The watermark moves before the second write of the status.
	}, einmaltest.Only(einmaltest.Wipes))
}

// The reference run: each handler is called once for its cause, and once more after each failure.
func TestALifeInWhichNothingGoesWrong(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		lifeOfWidgets(w)
		var calls []string
		for _, call := range w.Calls() {
			if call.Name == "kept" {
				calls = append(calls, call.String())
			}
		}
		want := []string{
			"register of default/kept (create, attempt 1): done",
			"configure of default/kept (create, attempt 1): retry",
			"configure of default/kept (create, attempt 2): retry",
			"configure of default/kept (create, attempt 3): retry",
			"configure of default/kept (create, attempt 4): done",
			"reconfigure of default/kept (update, attempt 1): done",
		}
		if diff := cmp.Diff(want, calls); diff != "" {
			w.Error(diff)
		}
	})
}

// A day of objects that wait and look again each hour writes nothing.
func TestASimulatedDayWritesNothing(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowUnfinished("wait")
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).OnCreate("wait", func(context.Context, *einmal.Change[fixture.Widget]) error {
				return einmal.RequeueAfter(time.Hour)
			})
			return op
		})
		for i := range 100 {
			w.Create(&fixture.Widget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("w-%d", i), Namespace: "default"}})
		}
		w.Advance(15 * time.Minute) // The watermark has moved.
		before := len(w.Writes())
		w.Advance(24 * time.Hour)
		if made := w.Writes()[before:]; len(made) != 0 {
			w.Errorf("%d writes in a quiet day:\n%s", len(made), strings.Join(made, "\n"))
		}
		if looked := len(w.Calls()); looked != 100*25 {
			w.Errorf("looked %d times, want %d", looked, 100*25)
		}
	})
}
