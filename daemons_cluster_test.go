package einmal_test

import (
	"context"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
)

// guardedOn is the life of a widget with a timer and a daemon, which writes while it runs, and holds the widget until it has
// ended.
func guardedOn() livedOn {
	return livedOn{
		unrecorded: true,
		declare: func(widgets *einmal.Kind[Widget], j *journal) {
			widgets.Timer("tick", time.Hour, done(j, "tick"))
			widgets.Daemon("guard", func(ctx context.Context, c *einmal.Change[Widget]) error {
				c.Object.Status.Phase = "guarded"
				if err := c.Sync(ctx); err != nil {
					return err
				}
				j.add(c.Object.Name, "guard of a widget that is "+c.Object.Status.Phase)
				<-ctx.Done()
				j.add(c.Object.Name, "guard ends: "+context.Cause(ctx).Error())
				return nil
			})
		},
		live: func(t *testing.T, w *world, _ *journal) {
			t.Helper()
			w.Kubectl(t, "", "wait", "widget", lived, "--for=jsonpath={.status.phase}=guarded")
			w.Kubectl(t, "", "delete", "widget", lived)
		},
		want: []string{"tick 1", "guard of a widget that is guarded", "guard ends: the object is being deleted"},
	}
}
