package einmal_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// keepShards makes a Service for each shard of a widget, and deletes those that a smaller widget does not need. While the Deployment behind them
// is not ready, it returns: it is called again when the Deployment changes.
func keepShards(ctx context.Context, c *einmal.Change[Widget]) error {
	server := fixture.NewDeployment(c.Object.Name)
	if err := c.Apply(ctx, server); err != nil {
		return err
	}
	if server.Status.ObservedGeneration != server.Generation || server.Status.AvailableReplicas == 0 {
		c.Object.Status.Phase = "waiting for the Deployment " + server.Name
		return nil
	}
	var wanted []string
	for n := range c.Object.Spec.Size {
		shard := &corev1.Service{Spec: corev1.ServiceSpec{Selector: server.Spec.Selector.MatchLabels, Ports: []corev1.ServicePort{{Port: 80}}}}
		shard.Name = fmt.Sprintf("%s-%d", c.Object.Name, n)
		if err := c.Apply(ctx, shard); err != nil {
			return err
		}
		wanted = append(wanted, shard.Name)
	}
	c.Object.Status.Phase = "ready"
	return c.Prune(ctx, &corev1.Service{}, wanted...)
}

// A handler waits for one child, and deletes other children that are no longer wanted.
func ExamplePrunes() {
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds), einmal.Applies(&appsv1.Deployment{}, &corev1.Service{}))
	einmal.For[Widget](op).Reconcile("keep-shards", keepShards, einmal.Owns[appsv1.Deployment](), einmal.Prunes[corev1.Service]())
	fmt.Println("the Services are those that the widget needs")
	// Output: the Services are those that the widget needs
}
