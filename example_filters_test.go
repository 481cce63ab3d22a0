package einmal_test

import (
	"context"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// A field handler gets the field before and after the change, in its own type. It is for the widgets of one team, and answers
// one transition.
func ExampleOnField() {
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[Widget](op)
	einmal.OnField(widgets, "upgrade", "spec.color",
		func(_ context.Context, c *einmal.Change[Widget], before, after string) error {
			c.Log.Info("upgraded", "from", before, "to", after)
			return nil
		},
		einmal.Labels("team", einmal.Present()),
		einmal.FieldChanges("spec.color", einmal.From(einmal.Equals("trial")), einmal.To(einmal.Present())),
	)
	// op.Main()

	// Output:
}

// Filters are joined by All, Any, Not and None. A filter of its own makes several handlers be for the same objects.
func ExampleAny() {
	op := einmal.New("widgets.example.com", einmal.Scheme(fixture.AddKinds))
	ours := einmal.Any(
		einmal.Labels("team", einmal.Equals("a")),
		einmal.When(func(w *Widget) bool { return w.Namespace == "team-a" }),
	)
	widgets := einmal.For[Widget](op)
	widgets.OnCreate("make", func(context.Context, *einmal.Change[Widget]) error { return nil }, ours)
	widgets.OnDelete("unmake", func(context.Context, *einmal.Change[Widget]) error { return nil }, ours)
	// op.Main()

	// Output:
}
