package scripts_test

import (
	"context"
	"flag"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Scenarios as scripts. Each script names the numbers of the scenarios that it shows.
func TestScripts(t *testing.T) {
	rewrite := flag.Lookup("update").Value.String() == "true"
	einmaltest.Scripts(t, "testdata/*.txtar", scriptSubjects(), einmaltest.Rewrite(rewrite))
}

// Scripts end in the same state with any fault. These are the scripts that cover a whole life.
func TestWhateverGoesWrongScriptsEndTheSame(t *testing.T) {
	einmaltest.ExploreScripts(t, "testdata/10-*.txtar", scriptSubjects())
}

// scriptSubjects are the operators of the scripts. Each name is there for widgets, with records in the status, and for
// gadgets, with records in an annotation.
func scriptSubjects() einmaltest.Subjects {
	subjects := einmaltest.Subjects{
		"widgets":            subjectOf(fixture.Widgets, bySize[fixture.Widget]),
		"gadgets":            subjectOf(fixture.Gadgets, bySize[unstructured.Unstructured]),
		"registered-widgets": subjectOf(fixture.Widgets, registered[fixture.Widget]),
		"registered-gadgets": subjectOf(fixture.Gadgets, registered[unstructured.Unstructured]),
	}
	maps.Copy(subjects, verbSubjects())
	maps.Copy(subjects, filterSubjects())
	maps.Copy(subjects, retrySubjects())
	maps.Copy(subjects, statusSubjects())
	maps.Copy(subjects, stepSubjects())
	return subjects
}

// stage is what the handlers of a script act on, beside objects.
type stage struct {
	*einmaltest.Process
	registry *fixture.Registry
	troubles *fixture.Troubles
}

// bySize declares handlers that keep a ConfigMap of the object's name with its size, and note that in the status: make
// when the object is created, resize when spec.size changes. The handler greet runs when the operator resumes, and does
// nothing.
func bySize[T any](kind *einmal.Kind[T], of fixture.Accessors[T], s stage) {
	kind.OnCreate("make", configured(of, s, "make"))
	kind.OnUpdate("resize", configured(of, s, "resize"), einmal.Fields("spec.size"))
	kind.OnResume("greet", func(context.Context, *einmal.Change[T]) error { return nil })
}

// registered declares the same handlers, and two more: register registers the object outside before anything else,
// unregister takes that back when the object is deleted.
func registered[T any](kind *einmal.Kind[T], of fixture.Accessors[T], s stage) {
	set := func(handler string, wanted bool) func(context.Context, *einmal.Change[T]) error {
		return func(_ context.Context, c *einmal.Change[T]) error {
			if err := s.troubles.Next(handler); err != nil {
				return err
			}
			return s.registry.Set(s.Process, of.Name(c.Object), wanted)
		}
	}
	kind.OnCreate("register", set("register", true))
	bySize(kind, of, s)
	kind.OnDelete("unregister", set("unregister", false))
}

// configured is a handler that fails as the script asks for, and then does what configure does.
func configured[T any](of fixture.Accessors[T], s stage, handler string) einmal.HandlerFunc[T] {
	return func(ctx context.Context, c *einmal.Change[T]) error {
		if err := s.troubles.Next(handler); err != nil {
			return err
		}
		return of.Configure(ctx, c)
	}
}

// subjectOf is a subject with a kind and its handlers.
func subjectOf[T any](kind func(*einmal.Operator) (*einmal.Kind[T], fixture.Accessors[T]), handlers func(*einmal.Kind[T], fixture.Accessors[T], stage)) func(*einmaltest.World) einmaltest.Subject {
	return func(w *einmaltest.World) einmaltest.Subject {
		outside, ahead := &fixture.Registry{}, &fixture.Troubles{}
		return einmaltest.Subject{
			Operator: func(p *einmaltest.Process) *einmal.Operator {
				op := fixture.NewOperator()
				declared, of := kind(op)
				handlers(declared, of, stage{Process: p, registry: outside, troubles: ahead})
				return op
			},
			Steps:    map[string]func(...string) error{"fail": ahead.Plan},
			Outcomes: func() map[string]any { return map[string]any{"registered": outside.Registered()} },
		}
	}
}
