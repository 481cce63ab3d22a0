package explore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// guards are what daemons have in another system: a guard for each object, of a size, as long as the object is there.
type guards struct {
	mu    sync.Mutex
	sizes map[string]int64
}

func (g *guards) set(p *einmaltest.Process, name string, size int64) error {
	return p.IdempotentEffect("guard "+name, func() (any, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.sizes[name] = size; size == 0 {
			delete(g.sizes, name)
		}
		return size, nil
	})
}

// left are the guards that are there.
func (g *guards) left() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return fmt.Sprint(g.sizes)
}

// guarded declares a daemon that keeps a guard of its object's size, notes it in the status, and takes the guard away when
// the object goes.
func guarded[T any](kind *einmal.Kind[T], of fixture.Accessors[T], p *einmaltest.Process, outside *guards) {
	kind.Daemon("guard", func(ctx context.Context, c *einmal.Change[T]) error {
		guarded := int64(0)
		defer dismiss(ctx, func() { _ = outside.set(p, of.Name(c.Object), 0) })
		for {
			if size := of.Size(c.Object); size != guarded {
				if err := outside.set(p, of.Name(c.Object), size); err != nil {
					return err
				}
				guarded = size
				of.SetPhase(c.Object, fmt.Sprintf("guarded, size %d", size))
			}
			if err := c.Sync(ctx); err != nil {
				return err
			}
			if err := fixture.Pause(ctx, 20*time.Second); err != nil {
				return err
			}
		}
	}, einmal.Backoff(time.Second, 10*time.Second))
	kind.OnUpdate("follow", fixture.Nothing[T])
	kind.OnDelete("dismiss", func(_ context.Context, c *einmal.Change[T]) error { return outside.set(p, of.Name(c.Object), 0) })
}

// dismiss takes the guard of a deleted object away: the delete handler may have been faster than the last call of the daemon.
func dismiss(ctx context.Context, guard func()) {
	if errors.Is(context.Cause(ctx), einmal.ErrObjectDeleted) {
		guard()
	}
}

// guardedLife creates a guarded object, changes it and may delete it.
func guardedLife[T any](w *einmaltest.World, kind func(*einmal.Operator) (*einmal.Kind[T], fixture.Accessors[T]), one client.Object, then func()) {
	outside := &guards{sizes: map[string]int64{}}
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := fixture.NewOperator()
		declared, of := kind(op)
		guarded(declared, of, p, outside)
		declared.Timer("tick", time.Minute, fixture.Nothing[T])
		return op
	})
	w.Create(one)
	w.Advance(90 * time.Second)
	w.Patch(one, `{"spec":{"size":2}}`)
	w.Advance(time.Minute)
	then()
	w.Advance(10 * time.Minute)
	w.Outcome("guards", outside.left())
}

// Scenarios 62, 63 and 69: with any fault, also when two processes have a daemon each, the final state is the same, and a crashed process does
// nothing more.
func TestWhateverGoesWrongDaemonsEndTheSame(t *testing.T) {
	t.Run("widgets", func(t *testing.T) {
		einmaltest.Explore(t, func(w *einmaltest.World) { guardedLife(w, fixture.Widgets, fixture.NewWidget("one"), func() {}) })
	})
	t.Run("gadgets, deleted", func(t *testing.T) {
		einmaltest.Explore(t, func(w *einmaltest.World) {
			gadget := fixture.NewGadget("one", 1)
			guardedLife[unstructured.Unstructured](w, fixture.Gadgets, gadget, func() { w.Delete(gadget) })
		})
	})
}
