package cluster_test

import (
	"context"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// stored waits until the widget's record has all of these parts.
func (w *world) stored(t *testing.T, name string, parts ...string) {
	t.Helper()
	cluster.Eventually(t, "the record of "+name, func(ctx context.Context) error {
		found, err := w.get(ctx, fixture.StatusCarrier(), name)
		if err != nil {
			return err
		}
		for _, part := range parts {
			if text := fixture.StatusCarrier().Record(found); !strings.Contains(text, part) {
				return &missingError{part, text}
			}
		}
		return nil
	})
}

type missingError struct{ part, text string }

// Error tells what is missing where.
func (m *missingError) Error() string { return m.part + " is not in " + m.text }

// A crash in a long handler does not forget the one before it.
func (w *world) flushed(t *testing.T) {
	running, finish := make(chan bool, 1), make(chan bool)
	stop, _ := w.widgets(t, fixture.Identity, func(widgets *einmal.Kind[fixture.Widget]) {
		widgets.OnCreate("short", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			c.Object.Status.Phase = "short is done"
			return nil
		})
		widgets.OnCreate("long", func(_ context.Context, c *einmal.Change[fixture.Widget]) error {
			running <- true
			<-finish
			c.Object.Status.Phase += ", long too"
			return nil
		})
	})
	w.spend(t, fixture.StatusCarrier(), "a short and a long handler", 2, func() {
		w.create(t, fixture.StatusCarrier(), "flushed")
		<-running
		w.phase(t, "flushed", "short is done")
		w.stored(t, "flushed", `"short":{"cause":"create","outcome":"done"`, `"long":{"cause":"create","outcome":"pending"`)
		close(finish)
		w.phase(t, "flushed", "short is done, long too")
		w.stored(t, "flushed", `"base"`)
	})
	stop()
	w.delete(t, fixture.StatusCarrier(), "flushed")
}
