package explore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// accounts is a system outside of the cluster that has one account for each name, with a number of its own, and members.
type accounts struct {
	mu      sync.Mutex
	numbers map[string]int
	members map[string]bool
}

func (a *accounts) open(p *einmaltest.Process, name string) (opened fixture.Account, err error) {
	err = p.IdempotentEffect("open the account of "+name, func() (any, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.numbers[name] == 0 {
			a.numbers[name] = len(name) + 100
		}
		opened.Number = a.numbers[name]
		return opened.Number, nil
	})
	return opened, err
}

func (a *accounts) add(p *einmaltest.Process, member string) error {
	return p.IdempotentEffect("add "+member, func() (any, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.members[member] = true
		return true, nil
	})
}

func (a *accounts) close(p *einmaltest.Process, name string) error {
	return p.IdempotentEffect("close the account of "+name, func() (any, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.numbers, name)
		maps.DeleteFunc(a.members, func(member string, _ bool) bool { return strings.HasPrefix(member, name+" ") })
		return nil, nil
	})
}

// inManySteps declares a creation whose steps write the status, take longer than the window and fail at first, and a
// deletion in steps.
func inManySteps[T any](kind *einmal.Kind[T], of fixture.Accessors[T], p *einmaltest.Process, outside *accounts) {
	kind.OnCreate("make", func(ctx context.Context, c *einmal.Change[T]) error {
		name := of.Name(c.Object)
		account, err := einmal.StepResult(ctx, c, "account", func(context.Context) (fixture.Account, error) {
			of.SetPhase(c.Object, "has an account")
			return outside.open(p, name)
		})
		if err != nil {
			return err
		}
		if err := fixture.Pause(ctx, 2*time.Second); err != nil {
			return err
		}
		err = einmal.Step(ctx, c, "members", func(ctx context.Context) error {
			return einmal.Each(ctx, c, []string{"a", "b", "c"}, strings.Clone, func(_ context.Context, member string) error {
				if member == "b" && c.Attempt < 3 {
					return einmal.RetryAfter(time.Second, errors.New("not yet"))
				}
				return outside.add(p, fmt.Sprintf("%s %s in %d", name, member, account.Number))
			})
		})
		if err != nil {
			return err
		}
		return einmal.Step(ctx, c, "ready", func(context.Context) error {
			of.SetPhase(c.Object, fmt.Sprintf("ready in %d", account.Number))
			return nil
		})
	})
	kind.OnDelete("unmake", func(ctx context.Context, c *einmal.Change[T]) error {
		return einmal.Step(ctx, c, "account", func(context.Context) error { return outside.close(p, of.Name(c.Object)) })
	})
}

func lifeInSteps[T any](w *einmaltest.World, kind func(*einmal.Operator) (*einmal.Kind[T], fixture.Accessors[T]), one client.Object, then func()) {
	outside := &accounts{numbers: map[string]int{}, members: map[string]bool{}}
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := fixture.NewOperator()
		declared, of := kind(op)
		inManySteps(declared, of, p, outside)
		return op
	})
	w.Create(one)
	w.Advance(time.Minute)
	then()
	w.Advance(10 * time.Minute)
	w.Outcome("members", slices.Sorted(maps.Keys(outside.members)))
	w.Outcome("numbers", outside.numbers)
}

// Handlers in steps (scenario 54): with any fault the final state is the same, and no recorded step is missing in the object or outside.
func TestWhateverGoesWrongStepsEndTheSame(t *testing.T) {
	t.Run("created, with the record in the status", func(t *testing.T) {
		einmaltest.Explore(t, func(w *einmaltest.World) { lifeInSteps(w, fixture.Widgets, fixture.NewWidget("one"), func() {}) })
	})
	t.Run("created and deleted, with the record in the annotation", func(t *testing.T) {
		einmaltest.Explore(t, func(w *einmaltest.World) {
			gadget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
			gadget.SetAPIVersion(fixture.Group + "/v1")
			gadget.SetKind("Gadget")
			gadget.SetNamespace("default")
			gadget.SetName("one")
			lifeInSteps(w, fixture.Gadgets, gadget, func() { w.Delete(gadget) })
		})
	})
}
