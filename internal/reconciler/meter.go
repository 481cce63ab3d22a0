package reconciler

import (
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// notePending tells the metrics whether some handler is not finished with the object, after what was done.
func (p *pass) notePending(done *work) {
	stored := done.journal.Record()
	if p.plan.Cause != cause.Free && !stored.Deleted && (p.openIn(stored.Handlers) || p.openIn(p.memory.levels) || p.retries()) {
		p.r.Reports.Metrics.Pending(p.key.String())
		return
	}
	p.r.Reports.Metrics.Settled(p.key.String())
}

// retries reports whether some timer is tried again, out of its turn.
func (p *pass) retries() bool {
	for _, clock := range p.memory.clocks {
		if clock.Retries() {
			return true
		}
	}
	return false
}

// openIn reports whether an entry of a declared handler is open. A record can have entries of handlers of other releases.
func (p *pass) openIn(entries map[string]record.Entry) bool {
	return slices.ContainsFunc(p.view.Pure.Handlers, func(declared handler.Declaration) bool {
		entry, has := entries[declared.ID]
		return has && entry.Outcome.Open()
	})
}
