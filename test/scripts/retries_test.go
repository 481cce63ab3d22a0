package scripts_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// retrySubjects are the operators of scripts about retries, failures, upgrades and deletions. What their handlers have
// seen is the outcome seen.
func retrySubjects() einmaltest.Subjects {
	return einmaltest.Subjects{
		"three-creators":   ordealOf(fixture.Widgets, inOrder[fixture.Widget]),
		"stubborn-widgets": ordealOf(fixture.Widgets, stubborn[fixture.Widget]),
		"stubborn-gadgets": ordealOf(fixture.Gadgets, stubborn[unstructured.Unstructured]),
		"limited-widgets":  ordealOf(fixture.Widgets, bounded[fixture.Widget]),
		"lenient-widgets":  ordealOf(fixture.Widgets, lenient[fixture.Widget]),
		"releasing-widgets": ordealOf(fixture.Widgets, func(kind *einmal.Kind[fixture.Widget], o *ordeal[fixture.Widget]) {
			kind.OnDelete("unmake", o.handler("unmake"), einmal.ReleaseOnFailure())
		}),
		"resuming-widgets": ordealOf(fixture.Widgets, func(kind *einmal.Kind[fixture.Widget], o *ordeal[fixture.Widget]) {
			kind.OnResume("greet", o.handler("greet"))
			kind.OnResume("prepare", o.handler("prepare"), einmal.AlsoAtDeletion())
			kind.OnDelete("unmake", o.handler("unmake"))
		}),
		"timed-widgets": ordealOf(fixture.Widgets, func(kind *einmal.Kind[fixture.Widget], o *ordeal[fixture.Widget]) {
			kind.Timer("tick", 10*time.Minute, o.handler("tick"))
		}),
		"one-function": ordealOf(fixture.Widgets, func(kind *einmal.Kind[fixture.Widget], o *ordeal[fixture.Widget]) {
			sync := o.handler("sync")
			kind.OnUpdate("sync", sync)
			kind.OnDelete("sync-deletion", sync)
		}),
	}
}

func inOrder[T any](kind *einmal.Kind[T], o *ordeal[T]) {
	for _, id := range []string{"one", "two", "three"} {
		kind.OnCreate(id, o.handler(id))
	}
}

// stubborn declares a handler for each verb. In the version renamed the create handler has another name, in the version
// removed there is none.
func stubborn[T any](kind *einmal.Kind[T], o *ordeal[T]) {
	switch o.version {
	case "renamed":
		kind.OnCreate("build", o.handler("build"), einmal.FormerlyKnownAs("make"))
	case "removed":
	default:
		kind.OnCreate("make", o.handler("make"))
	}
	kind.OnUpdate("resize", o.handler("resize"), einmal.Fields("spec.size"))
	kind.OnUpdate("mirror", o.handler("mirror"))
	kind.OnDelete("unmake", o.handler("unmake"))
}

func bounded[T any](kind *einmal.Kind[T], o *ordeal[T]) {
	kind.OnCreate("three-times", o.handler("three-times"), einmal.MaxAttempts(3))
	kind.OnCreate("an-hour", o.handler("an-hour"), einmal.RetryFor(time.Hour), einmal.Backoff(10*time.Minute, 20*time.Minute))
}

func lenient[T any](kind *einmal.Kind[T], o *ordeal[T]) {
	kind.OnCreate("lenient", o.handler("lenient"), einmal.OnError(einmal.PolicyIgnore))
	kind.OnCreate("strict", o.handler("strict"), einmal.OnError(einmal.PolicyFail))
	kind.OnCreate("last", o.handler("last"))
}

// ordeal is what handlers go through in a script, and what they have seen.
type ordeal[T any] struct {
	of      fixture.Accessors[T]
	version string
	*trials
}

type trials struct {
	mu    sync.Mutex
	ahead map[string][]trial // by handler
	seen  []string
}

// trial is what becomes of one attempt.
type trial struct {
	takes time.Duration
	err   error
}

func ordealOf[T any](kind func(*einmal.Operator) (*einmal.Kind[T], fixture.Accessors[T]), declare func(*einmal.Kind[T], *ordeal[T])) func(*einmaltest.World) einmaltest.Subject {
	return func(w *einmaltest.World) einmaltest.Subject {
		shared := &trials{ahead: map[string][]trial{}}
		version := func(name string) func(*einmaltest.Process) *einmal.Operator {
			return func(*einmaltest.Process) *einmal.Operator {
				op := fixture.NewOperator()
				declared, of := kind(op)
				declare(declared, &ordeal[T]{of: of, version: name, trials: shared})
				return op
			}
		}
		return einmaltest.Subject{
			Operator: version(""),
			Versions: map[string]func(*einmaltest.Process) *einmal.Operator{"renamed": version("renamed"), "removed": version("removed")},
			Steps: map[string]func(...string) error{
				"fails":  shared.plan("fails HANDLER N", func(string) (trial, error) { return trial{err: fixture.ErrWanted}, nil }),
				"gives":  shared.plan("gives HANDLER up", func(string) (trial, error) { return trial{err: einmal.Permanent(fixture.ErrWanted)}, nil }),
				"asks":   shared.plan("asks HANDLER N DURATION", asksFor(fixture.ErrWanted)),
				"waits":  shared.plan("waits HANDLER N DURATION", asksFor(nil)),
				"panics": shared.plan("panics HANDLER N", func(string) (trial, error) { return trial{err: errPanic}, nil }),
				"takes":  shared.plan("takes HANDLER N DURATION", func(d string) (made trial, err error) { made.takes, err = time.ParseDuration(d); return made, err }),
				"forget": func(...string) error { shared.seen = nil; return nil },
			},
			Outcomes: func() map[string]any { return map[string]any{"seen": shared.all()} },
		}
	}
}

var errPanic = errors.New("a bug")

func asksFor(err error) func(string) (trial, error) {
	return func(text string) (trial, error) {
		d, wrong := time.ParseDuration(text)
		return trial{err: einmal.RetryAfter(d, err)}, wrong
	}
}

// plan is a step by which the next attempts of a handler go as the script wants.
func (t *trials) plan(usage string, made func(string) (trial, error)) func(...string) error {
	return func(words ...string) error {
		words = append(words, "1", "")
		n, err := strconv.Atoi(words[1])
		if words[1] == "up" {
			n, err = 1, nil
		}
		next, wrong := made(words[2])
		if err != nil || wrong != nil {
			return fmt.Errorf("it is written as %s: %w", usage, errors.Join(err, wrong))
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		for range n {
			t.ahead[words[0]] = append(t.ahead[words[0]], next)
		}
		return nil
	}
}

func (t *trials) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.seen...)
}

// next is the next trial of a handler.
func (t *trials) next(id, saw string) trial {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = append(t.seen, saw)
	if len(t.ahead[id]) == 0 {
		return trial{}
	}
	next := t.ahead[id][0]
	t.ahead[id] = t.ahead[id][1:]
	return next
}

// handler goes through the trials of its id.
func (o *ordeal[T]) handler(id string) einmal.HandlerFunc[T] {
	return func(ctx context.Context, c *einmal.Change[T]) error {
		saw := fmt.Sprintf("%s for %s, size %d", id, c.Reason, o.of.Size(c.Object))
		for _, difference := range c.Diff {
			saw += fmt.Sprintf(" (%s from %v)", difference.Path[len(difference.Path)-1], difference.Old)
		}
		// A backoff is random; only the delay that a handler asked for is shown.
		if since := time.Since(c.Started).Round(10 * time.Second); since > 0 {
			saw += fmt.Sprintf(", %s after the first attempt", since)
		}
		next := o.next(id, saw)
		if errors.Is(next.err, errPanic) {
			panic(next.err)
		}
		done := time.NewTimer(next.takes)
		defer done.Stop()
		select {
		case <-done.C:
			return next.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
