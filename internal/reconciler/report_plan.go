package reconciler

import (
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// notePending tells the metrics whether some handler is not finished with the object, after what was done.
func (l *loop) notePending(done *work) {
	stored := done.journal.Record()
	if l.s.plan.Cause != cause.Free && !stored.Deleted && (l.openIn(stored.Handlers) || l.openIn(l.s.memory.levels) || l.s.memory.retries()) {
		l.s.r.Reports.Metrics.Pending(l.s.key.String())
		return
	}
	l.s.r.Reports.Metrics.Settled(l.s.key.String())
}

// openIn reports whether an entry of a declared handler is open. A record can have entries of handlers of other releases.
func (l *loop) openIn(entries map[string]record.Entry) bool {
	return slices.ContainsFunc(l.s.view.Pure.Handlers, func(declared handler.Declaration) bool {
		entry, has := entries[declared.ID]
		return has && entry.Outcome.Open()
	})
}

// reportPlan reports why the object is reconciled: as more than a debug message only when that is news.
func (l *loop) reportPlan() {
	if l.s.plan.Unreadable {
		l.s.r.Reports.DigestKeyChanged(l.s.r.Settings.StatePlace())
	}
	l.reportDeletion()
	l.reportRelease()
	for _, given := range l.s.plan.GivenUp {
		l.s.report.GivenUp(given)
	}
	switch {
	case l.s.plan.Cause == cause.Lost:
		l.s.report.RecordLost()
	case l.s.plan.Cause == cause.Create && l.s.seen.Record().Value() == nil:
		l.s.report.Log.Info("seen for the first time")
	case l.s.seen.Record().Remembered() && l.s.memory.denied == "" && l.s.plan.Cause != cause.Free:
		l.s.report.Log.Warn("record was removed or overwritten, writing it again")
	default:
		l.s.report.Log.Debug("reconciling", "cause", l.s.plan.Cause, "runs", len(l.s.plan.Runs), "wake", l.s.plan.Wake)
	}
}

// noteResumed notes the resume handlers that have nothing to do: those of objects or handlers that begin here, and those that are given up.
func (l *loop) noteResumed() {
	for _, given := range l.s.plan.GivenUp {
		if given.Verb == cause.Resume && !given.ByHand {
			l.s.memory.resumed[given.ID] = true
		}
	}
	for _, declared := range l.s.view.Pure.Handlers {
		if declared.Verb == cause.Resume && (l.s.plan.Cause == cause.Create || l.s.plan.Outside[declared.ID]) {
			l.s.memory.resumed[declared.ID] = true
		}
	}
}

// reportDeletion reports once which handlers the deletion has ended.
func (l *loop) reportDeletion() {
	if l.s.plan.Cause != cause.Delete || l.s.memory.deletionReported {
		return
	}
	l.s.memory.deletionReported = true
	var open []string
	for _, declared := range l.s.view.Pure.Handlers {
		entry, has := l.s.plan.Record.Handlers[declared.ID]
		if has && entry.Outcome.Open() && (declared.Verb == cause.Create || declared.Verb == cause.Update) {
			open = append(open, declared.ID)
		}
	}
	if len(open) > 0 {
		l.s.report.DeletionSupersedes(open)
	}
}

// reportRelease reports once that the annotation which releases an object names no delete handler.
func (l *loop) reportRelease() {
	asked := l.s.state().Release
	if l.s.plan.Cause != cause.Delete || asked == "" || asked == object.ReleaseAll || asked == l.s.memory.releaseReported {
		return
	}
	var known []string
	for _, declared := range l.s.view.Pure.Handlers {
		if declared.Verb == cause.Delete {
			known = append(known, declared.ID)
		}
	}
	if !slices.Contains(known, asked) {
		l.s.memory.releaseReported = asked
		l.s.report.ReleaseIgnored(asked, known)
	}
}
