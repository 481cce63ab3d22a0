package main

import (
	"context"
	"time"

	"github.com/einmal-operators/einmal"
)

// declareTimers declares what is done because time goes by.
func declareTimers(teams *einmal.Kind[team]) {
	teams.Timer("audit", 5*time.Minute, audit, einmal.InitialDelay(30*time.Second))
	teams.Timer("visit", time.Hour, visit, einmal.InitialDelayOf(untilVisit), einmal.FixedRate(), einmal.IdleFor(20*time.Second))
}

// audit begins half a minute after the operator has seen a team. The next run starts five minutes after the end of this one.
func audit(_ context.Context, c *change) error {
	if seats := c.Object.Status.Seats; len(c.Object.Spec.Members) > seats {
		c.Log.Warn("more members than seats", "members", len(c.Object.Spec.Members), "seats", seats)
	}
	return nil
}

// untilVisit is how long a team waits for its first visit: large ones wait less.
func untilVisit(t *team) time.Duration {
	return time.Minute / time.Duration(1+len(t.Spec.Members))
}

// visit runs on each hour after that, but not before the team has been unchanged for twenty seconds.
func visit(_ context.Context, c *change) error {
	c.Log.Debug("a visit", "title", c.Object.Spec.Title)
	return nil
}
