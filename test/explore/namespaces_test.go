package explore_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Scenario 84, explored: with any fault while namespaces come and go, each object in a matching namespace is handled once, and no other object
// is handled.
func TestWhateverGoesWrongNamespacesAreFollowed(t *testing.T) {
	einmaltest.Explore(t, func(w *einmaltest.World) {
		operator := func(*einmaltest.Process) *einmal.Operator {
			op := einmal.New(fixture.Identity, einmal.Scheme(fixture.AddKinds), einmal.CRDs(fixture.CRDs()), einmal.Applies(&corev1.ConfigMap{}),
				einmal.Namespaces("app-*,!app-x*", "default"), einmal.StateNamespace("default"))
			widgets := einmal.For[fixture.Widget](op)
			widgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				c.Object.Status.Phase = "made"
				made := fixture.NewConfigMap(c.Object.Name, c.Object.Spec.Size)
				made.Namespace = c.Object.Namespace
				return c.Apply(ctx, made)
			})
			widgets.OnDelete("unmake", func(context.Context, *einmal.Change[fixture.Widget]) error { return nil })
			widgets.Daemon("follow", func(ctx context.Context, _ *einmal.Change[fixture.Widget]) error {
				<-ctx.Done()
				return nil
			})
			return op
		}
		w.Install(operator)
		w.Create(fixture.NewNamespace("app-1"), fixture.NewNamespace("app-x"), fixture.NewWidgetIn("app-1"), fixture.NewWidgetIn("app-x"))
		w.Start(operator)
		w.Advance(10 * time.Minute)
		w.Create(fixture.NewNamespace("app-2"), fixture.NewWidgetIn("app-2"), fixture.NewWidgetIn("default"))
		w.Advance(10 * time.Minute)
		w.Delete(fixture.NewWidgetIn("app-1"), fixture.NewNamespace("app-1"))
		w.Advance(20 * time.Minute)
		w.Outcome("the namespace is there", w.Get(fixture.NewNamespace("app-1")))
		w.Create(fixture.NewNamespace("app-3"), fixture.NewWidgetIn("app-3"))
		w.Advance(10 * time.Minute)
	}, einmaltest.Without(einmaltest.Wipes)) // What is wiped below a watermark is Lost, which a condition tells.
}
