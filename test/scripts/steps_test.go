package scripts_test

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// stepSubjects are the operators of scripts about handlers in parts. Which parts ran is the outcome ran.
func stepSubjects() einmaltest.Subjects {
	return einmaltest.Subjects{
		"stepped-widgets": steppedOf(fixture.Widgets, inSteps[fixture.Widget]),
		"stepped-gadgets": steppedOf(fixture.Gadgets, inSteps[unstructured.Unstructured]),
		"nested-widgets":  steppedOf(fixture.Widgets, nested[fixture.Widget]),
		"nested-gadgets":  steppedOf(fixture.Gadgets, nested[unstructured.Unstructured]),
		"each-widgets":    steppedOf(fixture.Widgets, eachOf[fixture.Widget]),
	}
}

// inSteps makes two parts, of which the second has the name of the first, and takes the first back.
func inSteps[T any](kind *einmal.Kind[T], of fixture.Accessors[T], t *fixture.Trail) {
	kind.OnCreate("make", func(ctx context.Context, c *einmal.Change[T]) error {
		first, err := einmal.StepResult(ctx, c, "a", func(context.Context) (fixture.Part, error) {
			of.SetPhase(c.Object, "a is made")
			return fixture.Part{Name: "a of " + of.Name(c.Object)}, t.Run("a")
		})
		if err != nil {
			return err
		}
		return einmal.Step(ctx, c, "b", func(context.Context) error {
			if err := t.Run("b"); err != nil {
				return err
			}
			of.SetPhase(c.Object, "b is made with "+first.Name)
			return nil
		})
	})
	kind.OnDelete("unmake", func(ctx context.Context, c *einmal.Change[T]) error {
		return einmal.Step(ctx, c, "a", func(context.Context) error { return t.Run("a is taken back") })
	})
}

// nested makes parts of parts.
func nested[T any](kind *einmal.Kind[T], _ fixture.Accessors[T], t *fixture.Trail) {
	kind.OnCreate("make", func(ctx context.Context, c *einmal.Change[T]) error {
		step := func(ctx context.Context, id string) error {
			return einmal.Step(ctx, c, id, func(context.Context) error { return t.Run(id) })
		}
		err := einmal.Step(ctx, c, "house", func(ctx context.Context) error {
			if err := step(ctx, "walls"); err != nil {
				return err
			}
			return step(ctx, "roof")
		})
		if err != nil {
			return err
		}
		return step(ctx, "garden")
	})
}

// eachOf makes as many rooms as the object's size says.
func eachOf[T any](kind *einmal.Kind[T], of fixture.Accessors[T], t *fixture.Trail) {
	rooms := func(ctx context.Context, c *einmal.Change[T]) error {
		names := make([]string, of.Size(c.Object))
		for i := range names {
			names[i] = fmt.Sprintf("floor/%d", i+1)
		}
		return einmal.Each(ctx, c, names, strings.Clone, func(_ context.Context, name string) error { return t.Run(name) })
	}
	kind.OnCreate("make", rooms, einmal.Concurrency(1))
	kind.OnUpdate("resize", rooms, einmal.Concurrency(1))
}

func steppedOf[T any](kind func(*einmal.Operator) (*einmal.Kind[T], fixture.Accessors[T]), declare func(*einmal.Kind[T], fixture.Accessors[T], *fixture.Trail)) func(*einmaltest.World) einmaltest.Subject {
	return func(w *einmaltest.World) einmaltest.Subject {
		t := &fixture.Trail{}
		return einmaltest.Subject{
			Operator: func(*einmaltest.Process) *einmal.Operator {
				op := fixture.NewOperator()
				declared, of := kind(op)
				declare(declared, of, t)
				return op
			},
			Steps: map[string]func(...string) error{
				"fail":   t.Troubles.Plan,
				"forget": func(...string) error { t.Forget(); return nil },
			},
			Outcomes: func() map[string]any { return map[string]any{"ran": strings.Join(t.All(), ", ")} },
		}
	}
}
