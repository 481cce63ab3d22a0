package main

import (
	"context"
	"time"

	"github.com/einmal-operators/einmal"
)

// declareDaemons declares what runs while a team exists.
func declareDaemons(teams *einmal.Kind[team]) {
	teams.Daemon("attend", attend, einmal.StopGrace(5*time.Second), einmal.AbandonAfter(time.Minute))
}

// attend reads the latest state of its team every two minutes. After Stopping is closed it has five seconds before its context ends, and
// another minute before the operator stops waiting for it.
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
