package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/test/fixture"
)

// guardedOn is the life of a widget with a timer and a daemon, which writes while it runs, and holds the widget until it has
// ended.
func guardedOn() livedOn {
	return livedOn{
		unrecorded: true,
		declare: func(widgets *einmal.Kind[fixture.Widget], j *fixture.Journal) {
			widgets.Timer("tick", time.Hour, fixture.Done(j, "tick"))
			widgets.Daemon("guard", func(ctx context.Context, c *einmal.Change[fixture.Widget]) error {
				c.Object.Status.Phase = "guarded"
				if err := c.Sync(ctx); err != nil {
					return err
				}
				j.Add(c.Object.Name, "guard of a widget that is "+c.Object.Status.Phase)
				<-ctx.Done()
				j.Add(c.Object.Name, "guard ends: "+context.Cause(ctx).Error())
				return nil
			})
		},
		live: func(t *testing.T, w *world, _ *fixture.Journal) {
			t.Helper()
			w.Kubectl(t, "", "wait", "widget", lived, "--for=jsonpath={.status.phase}=guarded")
			w.Kubectl(t, "", "delete", "widget", lived)
		},
		want: []string{"tick 1", "guard of a widget that is guarded", "guard ends: the object is being deleted"},
	}
}
