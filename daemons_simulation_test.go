package einmal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
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
func guarded[T any](kind *einmal.Kind[T], of sized[T], p *einmaltest.Process, outside *guards) {
	kind.Daemon("guard", func(ctx context.Context, c *einmal.Change[T]) error {
		guarded := int64(0)
		defer dismiss(ctx, func() { _ = outside.set(p, of.name(c.Object), 0) })
		for {
			if size := of.size(c.Object); size != guarded {
				if err := outside.set(p, of.name(c.Object), size); err != nil {
					return err
				}
				guarded = size
				of.setPhase(c.Object, fmt.Sprintf("guarded, size %d", size))
			}
			if err := c.Sync(ctx); err != nil {
				return err
			}
			if err := pause(ctx, 20*time.Second); err != nil {
				return err
			}
		}
	}, einmal.Backoff(time.Second, 10*time.Second))
	kind.OnUpdate("follow", nothing[T])
	kind.OnDelete("dismiss", func(_ context.Context, c *einmal.Change[T]) error { return outside.set(p, of.name(c.Object), 0) })
}

// dismiss takes the guard of a deleted object away: the delete handler may have been faster than the last call of the daemon.
func dismiss(ctx context.Context, guard func()) {
	if errors.Is(context.Cause(ctx), einmal.ErrObjectDeleted) {
		guard()
	}
}

// guardedLife creates a guarded object, changes it and may delete it.
func guardedLife[T any](w *einmaltest.World, kind func(*einmal.Operator) (*einmal.Kind[T], sized[T]), one client.Object, then func()) {
	outside := &guards{sizes: map[string]int64{}}
	w.Start(func(p *einmaltest.Process) *einmal.Operator {
		op := newTestOperator()
		declared, of := kind(op)
		guarded(declared, of, p, outside)
		declared.Timer("tick", time.Minute, nothing[T])
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
		einmaltest.Explore(t, func(w *einmaltest.World) { guardedLife(w, declareWidgets, widgetOf("one"), func() {}) })
	})
	t.Run("gadgets, deleted", func(t *testing.T) {
		einmaltest.Explore(t, func(w *einmaltest.World) {
			gadget := gadgetOf("one", 1)
			guardedLife[unstructured.Unstructured](w, declareGadgets, gadget, func() { w.Delete(gadget) })
		})
	})
}

// A thousand objects have an hourly timer and a daemon each for a day. Every tick runs, only the finalizers of the first minute are written,
// memory does not grow, and no goroutine is left: it would keep the test from ending.
func TestTenThousandTicksAndAThousandDaemonsInADay(t *testing.T) {
	var mu sync.Mutex
	ticks, running := 0, 0
	count := func(what *int, by int) {
		mu.Lock()
		defer mu.Unlock()
		*what += by
	}
	declare := func(op *einmal.Operator) {
		widgets := einmal.For[Widget](op)
		widgets.Timer("tick", time.Hour, func(context.Context, *einmal.Change[Widget]) error { count(&ticks, 1); return nil }, einmal.FixedRate())
		widgets.Daemon("guard", func(ctx context.Context, c *einmal.Change[Widget]) error {
			count(&running, 1)
			defer count(&running, -1)
			return untilStopped(ctx, c)
		})
	}
	virtually(t, io.Discard, declare, func(t *testing.T, w *virtualWorld) {
		for i := range guardedObjects {
			if err := w.User.Create(t.Context(), widgetNamed(fmt.Sprintf("w-%d", i))); err != nil {
				t.Fatal(err)
			}
		}
		w.Pass(time.Hour)
		writes, before := len(w.Writes()), heap()
		mu.Lock()
		begun, first := running, ticks
		mu.Unlock()
		if begun != guardedObjects || first != guardedObjects || writes != guardedObjects {
			t.Errorf("after an hour there were %d daemons, %d ticks and %d writes", begun, first, writes)
		}
		began := time.Now()
		w.Pass(23 * time.Hour)
		after := heap()
		t.Logf("%d objects: heap %d KiB after an hour and %d KiB after a day, at %s of virtual time", guardedObjects, before>>10, after>>10, time.Since(began))
		mu.Lock()
		if ticks != 24*guardedObjects || running != guardedObjects || len(w.Writes()) != writes {
			t.Errorf("after a day there were %d daemons, %d ticks and %d writes more", running, ticks, len(w.Writes())-writes)
		}
		mu.Unlock()
		const noted = 400 // bytes that the simulation keeps of each call
		if after > before+before/10+23*guardedObjects*noted {
			t.Errorf("memory grows: from %d to %d bytes", before, after)
		}
		w.Stop()
		if running != 0 {
			t.Errorf("%d daemons go on", running)
		}
	})
}

// heap is what is in use when all that can go is gone.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
