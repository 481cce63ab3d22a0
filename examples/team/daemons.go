package main

import (
	"context"
	"time"

	"github.com/einmal-operators/einmal"
)

// declareDaemons declares what goes on as long as a team is there.
func declareDaemons(teams *einmal.Kind[team]) {
	teams.Daemon("attend", attend, einmal.StopGrace(5*time.Second), einmal.AbandonAfter(time.Minute))
}

// attend looks at the newest state of its team every other minute. When it is told to stop it has five seconds before its
// context ends, and another minute before nobody waits for it any more.
func attend(ctx context.Context, c *change) error {
	for {
		select {
		case <-c.Stopping():
			return nil
		case <-time.After(2 * time.Minute):
		}
		if err := c.Sync(ctx); err != nil {
			return err
		}
		c.Log.Debug("still there", "members", len(c.Object.Spec.Members))
	}
}
