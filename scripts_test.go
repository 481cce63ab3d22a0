package einmal_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// Scenarios as scripts. Each script names the numbers of the scenarios that it shows.
func TestScripts(t *testing.T) {
	rewrite := flag.Lookup("update").Value.String() == "true"
	einmaltest.Scripts(t, "testdata/scripts/*.txtar", scriptSubjects(), einmaltest.Rewrite(rewrite))
}

// Scripts end in the same state with any fault. These are the scripts that cover a whole life.
func TestWhateverGoesWrongScriptsEndTheSame(t *testing.T) {
	einmaltest.ExploreScripts(t, "testdata/scripts/10-*.txtar", scriptSubjects())
}

// scriptSubjects are the operators of the scripts. Each name is there for widgets, with records in the status, and for
// gadgets, with records in an annotation.
func scriptSubjects() einmaltest.Subjects {
	subjects := einmaltest.Subjects{
		"widgets":            subjectOf(declareWidgets, bySize[Widget]),
		"gadgets":            subjectOf(declareGadgets, bySize[unstructured.Unstructured]),
		"registered-widgets": subjectOf(declareWidgets, registered[Widget]),
		"registered-gadgets": subjectOf(declareGadgets, registered[unstructured.Unstructured]),
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
	registry *registry
	troubles *troubles
}

// bySize declares handlers that keep a ConfigMap of the object's name with its size, and note that in the status: make
// when the object is created, resize when spec.size changes. The handler greet runs when the operator resumes, and does
// nothing.
func bySize[T any](kind *einmal.Kind[T], of sized[T], s stage) {
	kind.OnCreate("make", configured(of, s, "make"))
	kind.OnUpdate("resize", configured(of, s, "resize"), einmal.Fields("spec.size"))
	kind.OnResume("greet", func(context.Context, *einmal.Change[T]) error { return nil })
}

// registered declares the same handlers, and two more: register registers the object outside before anything else,
// unregister takes that back when the object is deleted.
func registered[T any](kind *einmal.Kind[T], of sized[T], s stage) {
	set := func(handler string, wanted bool) func(context.Context, *einmal.Change[T]) error {
		return func(_ context.Context, c *einmal.Change[T]) error {
			if err := s.troubles.next(handler); err != nil {
				return err
			}
			return s.registry.set(s.Process, of.name(c.Object), wanted)
		}
	}
	kind.OnCreate("register", set("register", true))
	bySize(kind, of, s)
	kind.OnDelete("unregister", set("unregister", false))
}

// configured is a handler that fails as the script asks for, and then does what configure does.
func configured[T any](of sized[T], s stage, handler string) einmal.HandlerFunc[T] {
	return func(ctx context.Context, c *einmal.Change[T]) error {
		if err := s.troubles.next(handler); err != nil {
			return err
		}
		return of.configure(ctx, c)
	}
}

// subjectOf is a subject with a kind and its handlers.
func subjectOf[T any](kind func(*einmal.Operator) (*einmal.Kind[T], sized[T]), handlers func(*einmal.Kind[T], sized[T], stage)) func(*einmaltest.World) einmaltest.Subject {
	return func(w *einmaltest.World) einmaltest.Subject {
		outside, ahead := &registry{}, &troubles{}
		return einmaltest.Subject{
			Operator: func(p *einmaltest.Process) *einmal.Operator {
				op := newTestOperator()
				declared, of := kind(op)
				handlers(declared, of, stage{Process: p, registry: outside, troubles: ahead})
				return op
			},
			Steps:    map[string]func(...string) error{"fail": ahead.plan},
			Outcomes: func() map[string]any { return map[string]any{"registered": outside.left()} },
		}
	}
}

// troubles are failures of handlers that scripts ask for.
type troubles struct {
	mu    sync.Mutex
	ahead map[string]int // by handler
}

var errWanted = errors.New("the script wants it to fail")

// plan does the step: fail HANDLER N times.
func (t *troubles) plan(words ...string) error {
	if len(words) != 3 || words[2] != "times" {
		return errors.New("it is written as fail HANDLER N times")
	}
	n, err := strconv.Atoi(words[1])
	if err != nil {
		return fmt.Errorf("how many times: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ahead = map[string]int{words[0]: n}
	return nil
}

// next is the error of the next attempt of a handler.
func (t *troubles) next(handler string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ahead[handler] == 0 {
		return nil
	}
	t.ahead[handler]--
	return errWanted
}
