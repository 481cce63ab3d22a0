package einmal_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// every calls do again and again in virtual time, until the context ends.
func every(ctx context.Context, d time.Duration, do func()) {
	ticker := time.NewTicker(d)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// outage makes the API server refuse what an operator writes to its own objects, or drop the answers, for one half of
// each cycle. Users, and what handlers write, are served all the time: a handler whose own write fails has to run again.
func outage(cycle time.Duration, refuse func(http.ResponseWriter, *http.Request, http.Handler)) func(context.Context, *simulation.World) {
	return func(ctx context.Context, w *simulation.World) {
		var down atomic.Bool
		remove := w.Server.Intercept(func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			if down.Load() && strings.HasPrefix(r.URL.Path, "/apis/"+testGroup) && r.URL.Query().Get("fieldManager") == testIdentity {
				refuse(answer, r, next)
				return
			}
			next.ServeHTTP(answer, r)
		})
		defer remove()
		every(ctx, cycle/2, func() { down.Store(!down.Load()) })
	}
}

// The end is the same, and each handler still runs once for its cause: what was done and cannot be written is kept.
func TestTroubleWithTheAPIServerRepeatsNothing(t *testing.T) {
	kinds := simulatedKinds(t)
	clean, calm, _ := simulate(t, kinds, fate{})
	for name, trouble := range map[string]func(context.Context, *simulation.World){
		"writes are refused for a while": outage(40*time.Second, func(answer http.ResponseWriter, _ *http.Request, _ http.Handler) {
			http.Error(answer, "overloaded", http.StatusServiceUnavailable)
		}),
		"connections break": outage(30*time.Second, func(http.ResponseWriter, *http.Request, http.Handler) {
			panic(http.ErrAbortHandler)
		}),
		"answers are lost": outage(30*time.Second, func(answer http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(answer, r)
			panic(http.ErrAbortHandler)
		}),
		"watches break": func(ctx context.Context, w *simulation.World) {
			every(ctx, 700*time.Millisecond, w.Server.SeverWatches)
		},
		"watches are too old": func(ctx context.Context, w *simulation.World) {
			every(ctx, 3*time.Second, w.Server.ExpireWatches)
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, world, _ := simulate(t, kinds, fate{trouble: trouble})
			if diff := cmp.Diff(clean, state); diff != "" {
				t.Errorf("another end: %s", diff)
			}
			world.check(t, len(calm.handled("kept")))
			for _, widget := range []string{"kept", "deleted"} {
				if diff := cmp.Diff(calm.handled(widget), world.handled(widget)); diff != "" {
					t.Errorf("handlers of %s: %s", widget, diff)
				}
			}
		})
	}
}
