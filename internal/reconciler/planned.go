package reconciler

import (
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// reportPlan reports why the object is reconciled: as more than a debug message only when that is news.
func (p *pass) reportPlan() {
	if p.plan.Unreadable {
		p.r.Reports.DigestKeyChanged(p.r.Settings.StatePlace())
	}
	p.reportDeletion()
	p.reportRelease()
	for _, given := range p.plan.GivenUp {
		p.report.GivenUp(given)
	}
	switch {
	case p.plan.Cause == cause.Lost:
		p.report.RecordLost()
	case p.plan.Cause == cause.Create && p.seen.Record().Value() == nil:
		p.report.Log.Info("seen for the first time")
	case p.seen.Record().Remembered() && p.memory.denied == "" && p.plan.Cause != cause.Free:
		p.report.Log.Warn("record was removed or overwritten, writing it again")
	default:
		p.report.Log.Debug("reconciling", "cause", p.plan.Cause, "runs", len(p.plan.Runs), "wake", p.plan.Wake)
	}
}

// noteResumed notes the resume handlers that have nothing to do: those of objects or handlers that begin here, and those that are given up.
func (p *pass) noteResumed() {
	for _, given := range p.plan.GivenUp {
		if given.Verb == cause.Resume && !given.ByHand {
			p.memory.resumed[given.ID] = true
		}
	}
	for _, declared := range p.view.Pure.Handlers {
		if declared.Verb == cause.Resume && (p.plan.Cause == cause.Create || p.plan.Outside[declared.ID]) {
			p.memory.resumed[declared.ID] = true
		}
	}
}

// reportDeletion reports once which handlers the deletion has ended.
func (p *pass) reportDeletion() {
	if p.plan.Cause != cause.Delete || p.memory.deletionReported {
		return
	}
	p.memory.deletionReported = true
	var open []string
	for _, declared := range p.view.Pure.Handlers {
		entry, has := p.plan.Record.Handlers[declared.ID]
		if has && entry.Outcome.Open() && (declared.Verb == cause.Create || declared.Verb == cause.Update) {
			open = append(open, declared.ID)
		}
	}
	if len(open) > 0 {
		p.report.DeletionSupersedes(open)
	}
}

// reportRelease reports once that the annotation which releases an object names no delete handler.
func (p *pass) reportRelease() {
	asked := p.state().Release
	if p.plan.Cause != cause.Delete || asked == "" || asked == object.ReleaseAll || asked == p.memory.releaseReported {
		return
	}
	var known []string
	for _, declared := range p.view.Pure.Handlers {
		if declared.Verb == cause.Delete {
			known = append(known, declared.ID)
		}
	}
	if !slices.Contains(known, asked) {
		p.memory.releaseReported = asked
		p.report.ReleaseIgnored(asked, known)
	}
}
