package virtual_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// A handler that ends its goroutine, as FailNow of a test does, counts as failed like one that panics: it is called again, and does not block a
// worker.
func TestAHandlerThatEndsItsGoroutineIsCalledAgain(t *testing.T) {
	exits := func(ran *fixture.Trail, what string) bool {
		if ran.Run(what); len(ran.All()) == 1 { //nolint:errcheck // It has no troubles.
			runtime.Goexit()
		}
		return true
	}
	for name, declare := range map[string]func(*einmal.Kind[fixture.Widget], *fixture.Trail){
		"a handler": func(widgets *einmal.Kind[fixture.Widget], ran *fixture.Trail) {
			widgets.OnCreate("make", func(context.Context, *einmal.Change[fixture.Widget]) error { exits(ran, "it"); return nil })
		},
		"a level-triggered one": func(widgets *einmal.Kind[fixture.Widget], ran *fixture.Trail) {
			widgets.Reconcile("look", func(context.Context, *einmal.Change[fixture.Widget]) error { exits(ran, "it"); return nil })
		},
		"an item": func(widgets *einmal.Kind[fixture.Widget], ran *fixture.Trail) {
			widgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				return einmal.Each(ctx, c, []string{"one"}, func(name string) string { return name }, func(context.Context, string) error {
					exits(ran, "it")
					return nil
				})
			})
		},
		"a daemon": func(widgets *einmal.Kind[fixture.Widget], ran *fixture.Trail) {
			widgets.Daemon("attend", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
				exits(ran, "it")
				<-c.Stopping()
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				ran := &fixture.Trail{}
				fixture.StartWidgets(w, func(widgets *einmal.Kind[fixture.Widget]) { declare(widgets, ran) })
				w.Advance(time.Second)
				w.Create(fixture.NewWidget("one"))
				w.Advance(time.Minute)
				expectRan(w, ran, "it", "it")
				w.Delete(fixture.NewWidget("one"))
				w.Advance(time.Minute)
				if w.Get(fixture.NewWidget("one")) {
					w.Error("the object is held")
				}
			})
		})
	}
}
