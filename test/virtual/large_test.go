package virtual_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
	"github.com/einmal-operators/einmal/test/fixture"
)

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
		widgets := einmal.For[fixture.Widget](op)
		widgets.Timer("tick", time.Hour, func(context.Context, *einmal.Change[fixture.Widget]) error { count(&ticks, 1); return nil }, einmal.FixedRate())
		widgets.Daemon("guard", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
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

// Ten thousand objects at the start are listed once and handled by no more workers than configured. A start with nothing to do writes nothing
// and sends no other requests (scenario 94).
func TestTenThousandObjectsAtTheStart(t *testing.T) {
	const workers = 16
	var mu sync.Mutex
	running, most, called := 0, 0, 0
	declare := func(op *einmal.Operator) {
		einmal.For[fixture.Widget](op).OnCreate("make", func(context.Context, *einmal.Change[fixture.Widget]) error {
			mu.Lock()
			called++
			running++
			most = max(most, running)
			mu.Unlock()
			<-time.After(100 * time.Millisecond)
			mu.Lock()
			running--
			mu.Unlock()
			return nil
		})
	}
	virtually(t, fixture.NewLog(t), declare, func(t *testing.T, w *virtualWorld) {
		w.Stop()
		for i := range objects {
			if err := w.User.Create(t.Context(), widgetNamed(fmt.Sprintf("w-%d", i))); err != nil {
				t.Fatal(err)
			}
		}
		w.start()
		w.Pass(10 * time.Minute)
		writes := slices.DeleteFunc(w.Writes(), func(made simulation.Request) bool { return made.Resource == "configmaps" }) // the watermark
		if called != objects || most > workers || len(writes) != objects {
			t.Errorf("%d calls, at most %d at once, %d writes; want %d, at most %d, %d", called, most, len(writes), objects, workers, objects)
		}
		w.Stop()
		asked := map[string]int{}
		w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			mu.Lock()
			if strings.Contains(r.URL.Path, "/widgets") {
				asked[r.Method]++
			}
			mu.Unlock()
			next.ServeHTTP(answer, r)
		})
		w.start()
		w.Pass(time.Minute)
		if called != objects || asked[http.MethodGet] != 1 || len(asked) != 1 {
			t.Errorf("a start with nothing to do called %d handlers and asked %v, want one list that is watched", called-objects, asked)
		}
	})
}
