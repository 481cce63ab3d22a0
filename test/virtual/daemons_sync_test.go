package virtual_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// Scenario 69: a daemon sees what its object was changed to, and writes while it runs.
func TestADaemonReadsAndWritesWhileItRuns(t *testing.T) {
	round := func(ctx context.Context, c *einmal.Change[fixture.Widget], n int, d *crew) error {
		c.Object.Status.Phase = fmt.Sprintf("round %d, size %d", n, c.Object.Spec.Size)
		if err := c.Sync(ctx); err != nil {
			return err
		}
		d.Add("%s", c.Object.Status.Phase)
		if err := fixture.Pause(ctx, time.Minute); err != nil {
			c.Object.Status.Phase = "stopped"
			return err
		}
		return c.Sync(ctx)
	}
	crewed(t, func(widgets *einmal.Kind[fixture.Widget], d *crew) {
		widgets.OnUpdate("resize", fixture.Nothing[fixture.Widget])
		widgets.Daemon("guard", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			for n := 1; ; n++ {
				if err := round(ctx, c, n, d); err != nil {
					return err
				}
			}
		})
	}, func(w *einmaltest.World, d *crew) {
		w.Create(fixture.NewWidget("one"))
		w.Advance(90 * time.Second)
		w.Patch(fixture.NewWidget("one"), `{"spec":{"size":7}}`)
		w.Advance(time.Minute)
		d.Expect(w, "round 1, size 1", "round 2, size 1", "round 3, size 7")
		w.Stop()
		one := fixture.NewWidget("one")
		if w.Get(one); one.Status.Phase != "stopped" {
			w.Errorf("what it has changed at the end is not written: the phase is %q", one.Status.Phase)
		}
	})
}

// A daemon that changes fields of other handlers fails, as other handlers do. Handlers that are not daemons cannot write while they run.
func TestWhatADaemonCannotWrite(t *testing.T) {
	crewed(t, func(widgets *einmal.Kind[fixture.Widget], d *crew) {
		widgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			d.Add("make: %v", c.Sync(ctx))
			return nil
		}, einmal.OwnsStatus("phase"))
		widgets.Daemon("guard", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Status.Phase = "mine"
			d.Add("phase: %v", c.Sync(ctx))
			c.Object.Status.Phase = ""
			c.Object.Spec.Color = "a color of more than twenty letters" // The schema says no.
			d.Add("color: %v", c.Sync(ctx))
			return untilStopped(ctx, c)
		})
	}, func(w *einmaltest.World, d *crew) {
		w.Create(fixture.NewWidget("one"))
		w.Advance(time.Minute)
		w.Stop()
		d.mu.Lock()
		defer d.mu.Unlock()
		for i, want := range []string{"make: sync: only daemons can call it", "phase: sync: handler guard changed fields that other handlers own", "color: sync: the API server rejected the changes of the handler"} {
			if i >= len(d.Lines) || !strings.HasPrefix(d.Lines[i], want) {
				w.Errorf("want %q, got %q", want, d.Lines)
			}
		}
	})
}

// Run reports options of daemons with impossible values, and options that have no meaning for a daemon.
func TestRunReportsMistakesOfDaemons(t *testing.T) {
	op := einmal.New("op.example.com", einmal.Scheme(fixture.AddKinds))
	widgets := einmal.For[fixture.Widget](op)
	widgets.Daemon("never", fixture.Nothing[fixture.Widget], einmal.AbandonAfter(0))
	widgets.Daemon("below", fixture.Nothing[fixture.Widget], einmal.StopGrace(-1))
	widgets.Daemon("timeout", fixture.Nothing[fixture.Widget], einmal.AttemptTimeout(time.Minute))
	err := op.Run(t.Context(), &rest.Config{Host: "http://127.0.0.1:1"}, einmal.RunOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"handler never of Widget: option AbandonAfter: must be positive, got 0s",
		"handler below of Widget: option StopGrace: must not be negative, got -1ns",
		"handler timeout of Widget: option AttemptTimeout: not allowed for a daemon",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\nbut:\n%v", want, err)
		}
	}
}
