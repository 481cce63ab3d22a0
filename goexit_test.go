package einmal_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
)

// A handler that ends its goroutine, as FailNow of a test does, counts as failed like one that panics: it is called again, and does not block a
// worker.
func TestAHandlerThatEndsItsGoroutineIsCalledAgain(t *testing.T) {
	exits := func(ran *trail, what string) bool {
		if ran.run(what); len(ran.all()) == 1 { //nolint:errcheck // It has no troubles.
			runtime.Goexit()
		}
		return true
	}
	for name, declare := range map[string]func(*einmal.Kind[Widget], *trail){
		"a handler": func(widgets *einmal.Kind[Widget], ran *trail) {
			widgets.OnCreate("make", func(context.Context, *einmal.Change[Widget]) error { exits(ran, "it"); return nil })
		},
		"a level-triggered one": func(widgets *einmal.Kind[Widget], ran *trail) {
			widgets.Reconcile("look", func(context.Context, *einmal.Change[Widget]) error { exits(ran, "it"); return nil })
		},
		"an item": func(widgets *einmal.Kind[Widget], ran *trail) {
			widgets.OnCreate("make", func(ctx context.Context, c *einmal.Change[Widget]) error {
				return einmal.Each(ctx, c, []string{"one"}, func(name string) string { return name }, func(context.Context, string) error {
					exits(ran, "it")
					return nil
				})
			})
		},
		"a daemon": func(widgets *einmal.Kind[Widget], ran *trail) {
			widgets.Daemon("attend", func(_ context.Context, c *einmal.Change[Widget]) error {
				exits(ran, "it")
				<-c.Stopping()
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			einmaltest.Run(t, func(w *einmaltest.World) {
				ran := &trail{}
				ofWidgets(w, func(widgets *einmal.Kind[Widget]) { declare(widgets, ran) })
				w.Advance(time.Second)
				w.Create(widgetOf("one"))
				w.Advance(time.Minute)
				expectRan(w, ran, "it", "it")
				w.Delete(widgetOf("one"))
				w.Advance(time.Minute)
				if w.Get(widgetOf("one")) {
					w.Error("the object is held")
				}
			})
		})
	}
}
