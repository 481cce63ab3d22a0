package einmal_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
)

// A child that somebody deletes or edits is put right: the handler applies what it wants, whatever there is.
func ExampleOwns() {
	op := einmal.New("widgets.example.com", einmal.Scheme(addTestKinds), einmal.Applies(&corev1.ConfigMap{}))
	keep := func(ctx context.Context, c *einmal.Change[Widget]) error {
		for _, related := range c.WokenBy {
			c.Log.Info("looking after my children", "because", related.String())
		}
		config := &corev1.ConfigMap{Data: map[string]string{"color": c.Object.Spec.Color}}
		config.Name = c.Object.Name
		return c.Apply(ctx, config)
	}
	einmal.For[Widget](op).Reconcile("keep-config", keep, einmal.Owns[corev1.ConfigMap]())
	// Output:
}

// Widgets are built anew when the defaults of their namespace change.
func ExampleWatches() {
	op := einmal.New("widgets.example.com", einmal.Scheme(addTestKinds))
	build := func(ctx context.Context, c *einmal.Change[Widget]) error {
		defaults := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Object.Namespace, Name: "defaults"}}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(defaults), defaults); err != nil {
			return client.IgnoreNotFound(err)
		}
		c.Object.Status.Phase = "built in " + defaults.Data["color"]
		return nil
	}
	einmal.For[Widget](op).Reconcile("build", build, einmal.Watches(func(config *corev1.ConfigMap) []types.NamespacedName {
		var concerned []types.NamespacedName
		for _, name := range config.Annotations { // Who uses the defaults is noted there.
			concerned = append(concerned, types.NamespacedName{Name: name})
		}
		return concerned
	}))
	// Output:
}
