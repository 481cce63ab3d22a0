package engine

import (
	"context"
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// What people see when a record was lost.
const (
	// LostCondition is the type of the condition of an object whose record was lost.
	LostCondition = "StateLost"
	lostReason    = "RecordMissing"
	lostSentence  = "the record of this object is missing, although every object of its age had one. Create handlers do not run, " +
		"because they may have run already. To run them once, set the annotation %s to a new value"
)

// tellLost warns once: in the log and as an event. The condition goes with the record.
func (p *pass) tellLost() {
	annotation := object.RecreateAnnotation(p.settings.Identity)
	p.meter.Lost()
	p.log.Warn("record lost while the operator was down, create handlers do not run",
		"remedy", "set the annotation to a new value to run them once", "annotation", annotation)
	p.warn(LostCondition, lostSentence, annotation)
}

// refreshBeforeRun reads the object live in the cases in which the cache is not enough:
//
//   - The record seems to be lost. The cache may not show it yet.
//   - A condition is to be written or ended. The type of the handlers need not have conditions, and those of others must stay.
//   - A related object is gone. The object may be gone too, and the cache shows that later.
//   - Another replica may have run the handlers, and the cache does not show that yet.
//   - The type of the handlers drops a record that an earlier release has kept in the status.
func (p *pass) refreshBeforeRun(ctx context.Context) error {
	asked := p.record != nil && p.record.Recreated != p.plan.Record.Recreated
	news := p.plan.Learns() || p.plan.Tidied
	blocked := p.record != nil && news && (len(p.pure.Blocked(*p.record)) > 0 || len(p.pure.Asking(*p.record)) > 0)
	conditions := p.description.Conditions.Listed && (asked || blocked)
	lost := p.plan.Cause == cause.Lost // mutant: lost-by-old-list
	doubted := p.memory.doubted && p.doubtful() && len(p.plan.Runs) > 0
	hidden := p.hidesRecords && (p.record == nil || p.removes(time.Now())) // mutant: hidden-record
	if p.exact || !lost && !conditions && !doubted && !hidden && !p.relatedDeleted() && !p.hasUncertainEffect() {
		return nil
	}
	live, err := p.objects.Get(ctx, p.key)
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
	return slices.ContainsFunc(p.plan.Runs, func(run handler.Run) bool { return p.pendingTriggers.byDeletion(p.key, run.ID) })
}

// hasUncertainEffect reports whether a handler will run that has started an effect whose result is unknown.
func (p *pass) hasUncertainEffect() bool {
	return slices.ContainsFunc(p.plan.Runs, func(run handler.Run) bool { return record.Unknown(run.Steps) })
}
