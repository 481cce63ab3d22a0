package einmal_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// stepSubjects are the operators of scripts about handlers in parts. Which parts ran is the outcome ran.
func stepSubjects() einmaltest.Subjects {
	return einmaltest.Subjects{
		"stepped-widgets": steppedOf(declareWidgets, inSteps[Widget]),
		"stepped-gadgets": steppedOf(declareGadgets, inSteps[unstructured.Unstructured]),
		"nested-widgets":  steppedOf(declareWidgets, nested[Widget]),
		"nested-gadgets":  steppedOf(declareGadgets, nested[unstructured.Unstructured]),
		"each-widgets":    steppedOf(declareWidgets, eachOf[Widget]),
	}
}

// Part is what a step gives to the steps after it.
type Part struct {
	Name string `json:"name"`
}

// inSteps makes two parts, of which the second has the name of the first, and takes the first back.
func inSteps[T any](kind *einmal.Kind[T], of sized[T], t *trail) {
	kind.OnCreate("make", func(ctx context.Context, c *einmal.Change[T]) error {
		first, err := einmal.StepResult(ctx, c, "a", func(context.Context) (Part, error) {
			of.setPhase(c.Object, "a is made")
			return Part{Name: "a of " + of.name(c.Object)}, t.run("a")
		})
		if err != nil {
			return err
		}
		return einmal.Step(ctx, c, "b", func(context.Context) error {
			if err := t.run("b"); err != nil {
				return err
			}
			of.setPhase(c.Object, "b is made with "+first.Name)
			return nil
		})
	})
	kind.OnDelete("unmake", func(ctx context.Context, c *einmal.Change[T]) error {
		return einmal.Step(ctx, c, "a", func(context.Context) error { return t.run("a is taken back") })
	})
}

// nested makes parts of parts.
func nested[T any](kind *einmal.Kind[T], _ sized[T], t *trail) {
	kind.OnCreate("make", func(ctx context.Context, c *einmal.Change[T]) error {
		step := func(ctx context.Context, id string) error {
			return einmal.Step(ctx, c, id, func(context.Context) error { return t.run(id) })
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
func eachOf[T any](kind *einmal.Kind[T], of sized[T], t *trail) {
	rooms := func(ctx context.Context, c *einmal.Change[T]) error {
		names := make([]string, of.size(c.Object))
		for i := range names {
			names[i] = fmt.Sprintf("floor/%d", i+1)
		}
		return einmal.Each(ctx, c, names, strings.Clone, func(_ context.Context, name string) error { return t.run(name) })
	}
	kind.OnCreate("make", rooms, einmal.Concurrency(1))
	kind.OnUpdate("resize", rooms, einmal.Concurrency(1))
}

// trail is which parts ran, with the failures that a script asks for.
type trail struct {
	troubles troubles
	mu       sync.Mutex
	ran      []string
}

func (t *trail) run(part string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ran = append(t.ran, part)
	return t.troubles.next(part)
}

func (t *trail) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.ran...)
}

func (t *trail) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ran = nil
}

func steppedOf[T any](kind func(*einmal.Operator) (*einmal.Kind[T], sized[T]), declare func(*einmal.Kind[T], sized[T], *trail)) func(*einmaltest.World) einmaltest.Subject {
	return func(w *einmaltest.World) einmaltest.Subject {
		t := &trail{}
		return einmaltest.Subject{
			Operator: func(*einmaltest.Process) *einmal.Operator {
				op := newTestOperator()
				declared, of := kind(op)
				declare(declared, of, t)
				return op
			},
			Steps: map[string]func(...string) error{
				"fail":   t.troubles.plan,
				"forget": func(...string) error { t.forget(); return nil },
			},
			Outcomes: func() map[string]any { return map[string]any{"ran": strings.Join(t.all(), ", ")} },
		}
	}
}
