package einmal_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// A daemon watches something outside for its object, and writes what it sees.
func ExampleKind_Daemon() {
	watch := func(ctx context.Context, c *einmal.Change[Widget]) error {
		for {
			phase, err := measure(ctx, c.Object.Spec.Size) // Waits until there is something new.
			if ctx.Err() != nil {
				return ctx.Err() // The widget goes, or the operator stops: whatever is returned then.
			}
			if err != nil {
				return err // Started again after a back-off.
			}
			c.Object.Status.Phase = phase
			if err := c.Sync(ctx); err != nil { // Written now; Object is the newest state afterwards.
				return err
			}
		}
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	einmal.For[Widget](op).Daemon("watch", watch, einmal.AbandonAfter(time.Minute), einmal.OwnsStatus("phase"))
	// Output:
}

// measure asks a system outside of the cluster.
func measure(context.Context, int) (string, error) { return "Used", nil }

// A timer polls a system that does not report its changes.
func ExampleKind_Timer() {
	countPods := func(ctx context.Context, c *einmal.Change[Widget]) error {
		pods := &corev1.PodList{}
		err := c.Client.List(ctx, pods, client.InNamespace(c.Object.Namespace), client.MatchingLabels{"widget": c.Object.Name})
		if err != nil {
			return err // Tried again with back-off, out of its turn.
		}
		if c.Object.Status.Phase = "Idle"; len(pods.Items) > 0 {
			c.Object.Status.Phase = "Used"
		}
		return nil // Where the phase is the same as before, nothing is written.
	}
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds), einmal.Permissions(&corev1.Pod{}, "list"))
	einmal.For[Widget](op).Timer("count-pods", 5*time.Minute, countPods, einmal.OwnsStatus("phase"))
	// Output:
}
