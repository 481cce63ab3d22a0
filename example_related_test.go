package einmal_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// A child that another client deletes or edits is restored: the handler applies the desired state, whatever the present state is.
func ExampleOwns() {
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds), einmal.Applies(&corev1.ConfigMap{}))
	keep := func(ctx context.Context, c *einmal.Change[Widget]) error {
		for _, related := range c.TriggeredBy {
			c.Log.Info("looking after my children", "because", related.String())
		}
		config := &corev1.ConfigMap{Data: map[string]string{"color": c.Object.Spec.Color}}
		config.Name = c.Object.Name
		return c.Apply(ctx, config)
	}
	einmal.For[Widget](op).Reconcile("keep-config", keep, einmal.Owns[corev1.ConfigMap]())
	// Output:
}

// Widgets are painted again when the ConfigMap changes that their color names. The index finds the widgets that name it.
func ExampleWatches() {
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	users := indexColors(op)
	paint := func(ctx context.Context, c *einmal.Change[Widget]) error {
		palette := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.Object.Namespace, Name: c.Object.Spec.Color}}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(palette), palette); err != nil {
			return client.IgnoreNotFound(err) // It is called again when there is one.
		}
		c.Object.Status.Phase = "painted in " + palette.Data["shade"]
		return nil
	}
	widgets.Reconcile("paint", paint, einmal.Watches(func(palette *corev1.ConfigMap) []types.NamespacedName {
		return users.Get(palette.Namespace + "/" + palette.Name)
	}))
	// Output:
}

// indexColors finds the widgets that use a color. An object has one value for each of its keys.
func indexColors(op *einmal.Operator) *einmal.Lookup[string, types.NamespacedName] {
	return einmal.Index(op, "by-color", func(widget *Widget) (map[string]types.NamespacedName, error) {
		return map[string]types.NamespacedName{
			widget.Namespace + "/" + widget.Spec.Color: client.ObjectKeyFromObject(widget),
		}, nil
	}, einmal.FieldMatches("spec.color", einmal.Present()))
}

// A handler of any kind can ask: here, who else has its color.
func ExampleIndex() {
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	users := indexColors(op)
	einmal.For[Widget](op).OnCreate("greet", func(_ context.Context, c *einmal.Change[Widget]) error {
		c.Log.Info("hello", "neighbours", len(users.Get(c.Object.Namespace+"/"+c.Object.Spec.Color))-1)
		return nil
	})
	// Output:
}
