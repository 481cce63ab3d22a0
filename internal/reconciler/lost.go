package reconciler

import (
	"context"
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// refreshBeforeRun reads the object live in the cases in which the cache is not enough:
//
//   - The record seems to be lost. The cache may not show it yet.
//   - A condition is to be written or ended. The type of the handlers need not have conditions, and those of others must stay.
//   - A related object is gone. The object may be gone too, and the cache shows that later.
//   - Another replica may have run the handlers, and the cache does not show that yet.
//   - The type of the handlers drops a record that an earlier release has kept in the status.
func (p *pass) refreshBeforeRun(ctx context.Context) error {
	found := p.seen.Record().Value()
	asked := found != nil && found.Recreated != p.plan.Record.Recreated
	news := p.plan.Learns() || p.plan.Tidied
	blocked := found != nil && news && (len(p.view.Pure.Blocked(*found)) > 0 || len(p.view.Pure.Asking(*found)) > 0)
	conditions := p.view.Description.Conditions.Listed && (asked || blocked)
	lost := p.plan.Cause == cause.Lost // mutant: lost-by-old-list
	doubted := p.memory.doubted && p.r.doubtful() && len(p.plan.Runs) > 0
	hidden := p.view.HidesRecords && (found == nil || p.removes(time.Now())) // mutant: hidden-record
	if p.seen.IsLive() || !lost && !conditions && !doubted && !hidden && !p.relatedDeleted() && !p.hasUncertainEffect() {
		return nil
	}
	live, err := p.r.Server.Get(ctx, p.key)
	if err != nil {
		return err
	}
	if err := p.openRaw(live); err != nil {
		return err
	}
	p.memory.doubted = false
	return p.decide()
}

// relatedDeleted reports whether a handler will run because a related object was deleted.
func (p *pass) relatedDeleted() bool {
	return slices.ContainsFunc(p.plan.Runs, func(run handler.Run) bool { return p.r.State.Objects.TriggeredByDeletion(p.key, run.ID) })
}

// hasUncertainEffect reports whether a handler will run that has started an effect whose result is unknown.
func (p *pass) hasUncertainEffect() bool {
	return slices.ContainsFunc(p.plan.Runs, func(run handler.Run) bool { return record.Unknown(run.Steps) })
}
