package engine

import (
	"context"
	"time"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// unended is the message of an attempt as long as it goes on.
const unended = "the attempt did not end: the process did"

// unbegun is an attempt that was to be counted before it began, and did not begin. The field before is the handler's entry without it.
type unbegun struct {
	attempt int
	before  record.Entry
	has     bool
}

// countFirst counts an attempt in the record before it begins, so that it also counts if the process ends in it. If the record cannot
// be saved the attempt neither begins nor counts. The record can have it all the same, when only the answer was lost.
func (p *pass) countFirst(ctx context.Context, w *work, run handler.Run) error {
	before, has := p.plan.Record.Handlers[run.ID]
	w.outcomes = append(w.outcomes, outcome{run: run, seen: w.current, at: time.Now(), result: handler.Result{
		Outcome: record.Retry, Message: unended, Delay: run.Backoff(p.memory.uid),
		Steps: run.Steps, // mutant: counted-attempt-without-intents
	}})
	p.memory.unbegun[run.ID] = unbegun{attempt: run.Attempt, before: before, has: has} // Until it begins.
	err := p.flush(ctx, w)
	if err != nil && p.memory != nil {
		w.outcomes = w.outcomes[:len(w.outcomes)-1]
		if len(w.outcomes) == 0 && p.memory.unsaved == w {
			p.memory.unsaved = nil
		}
	}
	return err
}

// begun is the record without the attempts that this process has counted and not begun.
func (m *memory) begun(r *record.Record) *record.Record {
	if r == nil {
		return nil
	}
	made := *r
	for id, missed := range m.unbegun {
		if entry := made.Handlers[id]; entry.Attempts != missed.attempt || entry.Message != unended {
			continue
		}
		if made = made.Without(id); missed.has {
			made = made.With(id, missed.before)
		}
	}
	return &made
}
