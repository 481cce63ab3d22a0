package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/daemons"
	"github.com/einmal-operators/einmal/internal/objects"
)

// finalTries is how often an object is reconciled for what its daemons have left when the operator stops.
const finalTries = 10

// Why all daemons of a kind are stopped.
var (
	errOperatorStops = errors.New("the operator is stopping")
	errKindRests     = errors.New("the kind is no longer served, or its registration changed")
)

// daemonOptions returns what daemons need of their kind.
func (k *keeper) daemonOptions(o *Operator) daemons.Options {
	return daemons.Options{
		Kind: k.kind, Views: &k.views, Reports: k.reports, Cache: k.cache, Server: k.server,
		Invoked: k.startup.Invoked, Submit: k.entries.PutEdits, Wake: k.wake,
		Stop: k.stop, Why: k.whyOver, Abandoned: &o.abandonedDaemons,
		Limit: func(grace time.Duration) time.Duration {
			switch {
			case k.election.lost():
				return 0
			case k.stopping():
				return min(grace, k.settings.Grace)
			}
			return grace
		},
	}
}

// startDaemons starts those daemons that the object is to have and has not.
func (p *pass) startDaemons() {
	if p.stopping() {
		return
	}
	for _, declared := range p.plan.Daemons {
		if p.daemons.Has(p.key, p.memory.uid, declared.ID) {
			continue
		}
		started := p.daemons.Start(daemons.Daemon{
			Key: p.key, UID: p.memory.uid, Object: p.newest(), Memo: p.entries.Memo(p.memory.uid)(),
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
	if body, err := p.kind.Canonical(p.seen.Raw()); p.seen.IsLive() && err == nil {
		return body
	}
	return p.seen.Body()
}

// stopDaemons stops those daemons that the object is not to have any more.
func (p *pass) stopDaemons() {
	deleting := p.seen.Deleting()
	p.daemons.Stop(p.key, func(uid, id string) error {
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

// endDaemons waits until all daemons have ended, or are abandoned, after the operator was asked to stop and its passes are
// over. What they have left is written then, unless another replica may act.
func (k *keeper) endDaemons(ctx context.Context) {
	k.daemons.Close(k.whyOver())
	k.daemons.Wait()
	if k.election.lost() {
		return
	}
	ctx, cancel := k.detached(ctx)
	defer cancel()
	for _, key := range k.entries.Keys() {
		for tries := 0; k.entries.HasEdits(key) && tries < finalTries; tries++ {
			if last := k.entries.Known(key); last != nil {
				last.freshness.patience, last.conflicts = time.Time{}, conflicts{} // Its last pass is over.
			}
			if _, err := k.pass(ctx, key); err != nil {
				k.reports.Log.Error("cannot write the last changes of a daemon", "object", key.String(), "error", k.reports.RedactError(err))
				break
			}
		}
	}
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

// wake takes the object to its next pass.
func (k *keeper) wake(key types.NamespacedName) { k.queue.Add(reconcile.Request{NamespacedName: key}) }

// whyOver tells why nothing is handled any more: because the operator stops, or because there is nothing to handle.
func (k *keeper) whyOver() error {
	select {
	case <-k.end:
		return errOperatorStops
	default:
		return errKindRests
	}
}
