package simulation

import (
	"context"
	"time"
)

// rollout starts and stops the processes of one start of an operator, as a Deployment does when it is updated.
type rollout struct {
	world *World
	ctx   context.Context //nolint:containedctx // It is the lifetime of the processes.
	// current makes the operator of the version that there is to be in the end.
	current func(*Process) Operator
	// stopFirst stops the process that was started first.
	stopFirst context.CancelFunc
}

// begin keeps one process running, until the context ends.
func (o *rollout) begin(ctx context.Context, make func(*Process) Operator) {
	o.world.stopped.Go(func() { o.world.keepRunning(ctx, make, false) })
}

// update starts the current version beside the first process, which stops in order a minute later.
func (o *rollout) update() {
	o.begin(o.ctx, o.current)
	o.later(rolloutTakes, o.stopFirst)
}

// rollBack starts the current version for a minute, goes back to the first process, and updates again later.
func (o *rollout) rollBack() {
	ctx, stop := context.WithCancel(o.ctx)
	o.begin(ctx, o.current)
	o.later(rolloutTakes, stop)
	o.later(downFor, o.update)
}

// later does something after a time, if the operator still runs then.
func (o *rollout) later(after time.Duration, do func()) {
	o.world.stopped.Go(func() {
		over := time.NewTimer(after)
		defer over.Stop()
		select {
		case <-over.C:
			do()
		case <-o.ctx.Done():
		}
	})
}
