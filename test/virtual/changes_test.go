package virtual_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

type visits struct{ n int }

// A test calls a handler as a plain function: every method of the Change works without an operator, and nothing is recorded.
func TestAHandlerIsTestedAsAPlainFunction(t *testing.T) {
	calls := 0
	handle := func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
		einmal.Memo[visits](c).n++
		if _, ok := c.Old(); ok {
			return errors.New("there is an old object")
		}
		c.Event(einmal.EventNormal, "Seen", "%s", c.Object.Name)
		if err := c.EventAbout(&corev1.Node{}, einmal.EventWarning, "Seen", "by %s", c.Object.Name); err != nil {
			return err
		}
		account, err := einmal.Effect(ctx, c, "account", einmal.RecoverByKey(func(_ context.Context, token string) (fixture.Account, error) {
			calls++
			return fixture.Account{Number: len(token)}, nil
		}))
		if err != nil {
			return err
		}
		err = einmal.Step(ctx, c, "each", func(ctx context.Context) error {
			return einmal.Each(ctx, c, []string{"a", "b"}, func(s string) string { return s }, func(context.Context, string) error { return nil })
		})
		c.Object.Status.Phase = c.Object.Name
		c.Log.Info("made", "number", account.Number)
		return errors.Join(err, c.Sync(ctx))
	}
	for range 2 {
		change := einmaltest.NewChange(fixture.NewWidget("one"))
		if err := handle(t.Context(), change); err != nil || change.Object.Status.Phase != "one" || einmal.Memo[visits](change).n != 1 || change.Stopping() != nil {
			t.Errorf("%v, left %+v", err, change.Object.Status)
		}
		if err := change.Apply(t.Context(), &corev1.ConfigMap{}); err == nil {
			t.Error("Apply works without a client")
		}
	}
	if calls != 2 {
		t.Errorf("the effect was called %d times, want once for each Change", calls)
	}
	var zero einmal.Change[fixture.Widget]
	if _, ok := zero.Old(); ok {
		t.Error("a zero Change has an old object")
	}
}

// An event can be about another object than the handled one.
func TestAnEventIsAboutAnotherObject(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				parent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Object.Namespace, Name: "parent"}}
				if err := c.EventAbout(&corev1.ConfigMap{}, einmal.EventNormal, "Nameless", ""); err == nil {
					return errors.New("an event about an object without a name is accepted")
				}
				return c.EventAbout(parent, einmal.EventWarning, "ChildMade", "The child is %s.", c.Object.Name)
			})
			return op
		})
		w.Create(fixture.NewWidget("one"))
		w.Advance(1e9 * 60)
		var found corev1.EventList
		if err := w.Client().List(w.Context(), &found, client.InNamespace("default")); err != nil {
			w.Fatal(err)
		}
		if len(found.Items) != 1 || found.Items[0].InvolvedObject.Name != "parent" || found.Items[0].Message != "The child is one." {
			w.Errorf("events: %+v", found.Items)
		}
	})
}

// Objects without a uid have separate limits. No event is about an event, and a handler of events sends none: each would trigger it again.
func TestEventsAboutOtherObjectsHaveTheirOwnLimits(t *testing.T) {
	const parents, burst = 30, 25
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator {
			op := fixture.NewOperator()
			einmal.For[fixture.Widget](op).OnCreate("make", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: c.Object.Namespace, Name: "event"}}
				errs := []error{c.EventAbout(event, einmal.EventNormal, "ChildMade", "made")}
				for i := range parents {
					parent := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Object.Namespace, Name: fmt.Sprintf("parent-%d", i)}}
					errs = append(errs, c.EventAbout(parent, einmal.EventNormal, "ChildMade", "made"))
				}
				return errors.Join(errs...)
			})
			einmal.For[corev1.Event](op).OnEvent("watch", func(_ context.Context, c *einmal.Change[corev1.Event]) error {
				return c.EventAbout(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "echo"}}, einmal.EventNormal, "Seen", "%s", c.Object.Name)
			})
			return op
		})
		w.Create(fixture.NewWidget("one"))
		w.Advance(1e9 * 60)
		sent := map[string]int{}
		for _, line := range eventsOf(w) {
			kind, name := strings.Fields(line)[2], strings.Fields(line)[3]
			sent[kind]++
			sent[name]++
		}
		if sent["ConfigMap"] != parents || sent["Event"] != 0 || sent["default/echo"] != 0 {
			w.Errorf("events: %v, want one about each of %d ConfigMaps, more than the burst of %d for one object, and none about or of events", sent, parents, burst)
		}
	})
}
