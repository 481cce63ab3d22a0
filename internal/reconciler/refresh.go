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
func (d reader) refreshBeforeRun(ctx context.Context) error {
	found := d.s.seen.Record().Value()
	asked := found != nil && found.Recreated != d.s.plan.Record.Recreated
	news := d.s.plan.Learns() || d.s.plan.Tidied
	blocked := found != nil && news && (len(d.s.view.Pure.Blocked(*found)) > 0 || len(d.s.view.Pure.Asking(*found)) > 0)
	conditions := d.s.view.Description.Conditions.Listed && (asked || blocked)
	lost := d.s.plan.Cause == cause.Lost // mutant: lost-by-old-list
	doubted := d.s.memory.doubted && d.s.r.doubtful() && len(d.s.plan.Runs) > 0
	hidden := d.s.view.HidesRecords && (found == nil || d.s.memory.removes(time.Now())) // mutant: hidden-record
	if d.s.seen.IsLive() || !lost && !conditions && !doubted && !hidden && !d.relatedDeleted() && !d.hasUncertainEffect() {
		return nil
	}
	live, err := d.s.r.Server.Get(ctx, d.s.key)
	if err != nil {
		return err
	}
	if err := d.openRaw(live); err != nil {
		return err
	}
	d.s.memory.doubted = false
	return d.s.decide()
}

// relatedDeleted reports whether a handler will run because a related object was deleted.
func (d reader) relatedDeleted() bool {
	return slices.ContainsFunc(d.s.plan.Runs, func(run handler.Run) bool { return d.s.r.State.Objects.TriggeredByDeletion(d.s.key, run.ID) })
}

// hasUncertainEffect reports whether a handler will run that has started an effect whose result is unknown.
func (d reader) hasUncertainEffect() bool {
	return slices.ContainsFunc(d.s.plan.Runs, func(run handler.Run) bool { return record.Unknown(run.Steps) })
}
