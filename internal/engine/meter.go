package engine

import (
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
)

// count tells the metrics of an attempt that has ended.
func (k *keeper) count(run handler.Run, outcome record.Outcome, took time.Duration) {
	k.meter.Ran(metrics.Run{
		Handler: run.ID, Reason: string(run.Reason), Outcome: string(outcome), Attempt: run.Attempt, Took: took,
	})
}

// notePending tells the metrics whether some handler is not finished with the object, after what was done.
func (p *pass) notePending(done *work) {
	if p.plan.Cause != cause.Free && !done.record.Deleted && (p.openIn(done.record.Handlers) || p.openIn(p.memory.levels) || p.retries()) {
		p.meter.Pending(p.key.String())
		return
	}
	p.meter.Settled(p.key.String())
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
	return slices.ContainsFunc(p.pure.Handlers, func(declared handler.Declaration) bool {
		entry, has := entries[declared.ID]
		return has && entry.Outcome.Open()
	})
}
