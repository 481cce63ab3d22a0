package reconciler

import (
	"context"
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/daemons"
	"github.com/einmal-operators/einmal/internal/objects"
)

// startDaemons starts those daemons that the object is to have and has not.
func (p *pass) startDaemons() {
	if p.r.stopping() {
		return
	}
	for _, declared := range p.plan.Daemons {
		if p.r.daemons.Has(p.key, p.memory.uid, declared.ID) {
			continue
		}
		started := p.r.daemons.Start(daemons.Daemon{
			Key: p.key, UID: p.memory.uid, Object: p.newest(), Memo: p.r.State.Objects.Memo(p.memory.uid)(),
			Run: handler.Run{
				Declaration: declared, Reason: declared.Verb, Attempt: 1, Started: time.Now(),
				MaybeRepeated: p.memory.inherited || p.memory.started[declared.ID],
			},
		})
		if started {
			p.memory.started[declared.ID] = true
		}
	}
}

// newest is the object as the pass leaves it.
func (p *pass) newest() object.Body {
	if body, err := p.r.Kind.Canonical(p.seen.Raw()); p.seen.IsLive() && err == nil {
		return body
	}
	return p.seen.Body()
}

// stopDaemons stops those daemons that the object is not to have any more.
func (p *pass) stopDaemons() {
	deleting := p.seen.Deleting()
	p.r.daemons.Stop(p.key, func(uid, id string) error {
		wanted := slices.ContainsFunc(p.plan.Daemons, func(declared handler.Declaration) bool { return declared.ID == id })
		switch {
		case uid != p.memory.uid:
			return daemons.ErrObjectGone
		case deleting:
			return daemons.ErrObjectDeleted
		case !wanted:
			return daemons.ErrNotMatched
		default:
			return nil
		}
	})
}

// deliver writes what a daemon has handed in.
func (p *pass) deliver(ctx context.Context, handed objects.Edits) error {
	w := &work{journal: journal.New(p.about(p.seen.Body()), handler.Keep, p.plan.Record, true), answered: handed.Answer}
	p.reportTouches(handed.Run, handed.Edits, w.journal.AddEdits(handed.Run.ID, handed.Edits))
	err := p.save(ctx, w)
	if rejection := w.journal.Rejection(); rejection != nil && handed.Answer == nil {
		p.report.Log.Error("last changes of daemon not written", "handler", handed.Run.ID, "error", rejection)
	}
	return err
}

// answer tells what has become of what was handed in.
func (w *work) answer(written object.Body, err error) {
	if w.answered != nil {
		w.answered(written, err)
		w.answered = nil
	}
}
