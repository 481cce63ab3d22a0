package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
	"github.com/einmal-operators/einmal/internal/objects"
)

// finalTries is how often an object is looked at for what its daemons have left when the operator stops.
const finalTries = 10

// ErrObjectDeleted is why a daemon is stopped whose object is being deleted.
var ErrObjectDeleted = errors.New("the object is being deleted")

// Why daemons are stopped otherwise.
var (
	errObjectGone    = objectGoneError{}
	errNotForIt      = errors.New("the object no longer matches the daemon's filters")
	errOperatorStops = errors.New("the operator is stopping")
	errKindRests     = errors.New("the kind is no longer served, or its registration changed")
)

// objectGoneError is why a daemon is stopped whose object does not exist any more.
type objectGoneError struct{}

// Error says so.
func (objectGoneError) Error() string { return "the object is gone" }

// Is makes it an ErrObjectDeleted, too.
func (objectGoneError) Is(target error) bool { return target == ErrObjectDeleted }

// daemons are the daemons of all objects of one kind. Passes start and stop them, and endDaemons ends them all; no other code
// does.
type daemons struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName][]*daemon
	// closed: nothing is handled any more, and none is started.
	closed bool
}

// startDaemons starts those daemons that the object is to have and has not.
func (p *pass) startDaemons() {
	if p.stopping() {
		return
	}
	for _, declared := range p.plan.Daemons {
		d := &daemon{
			keeper: p.keeper, handler: p.kind.Handler(declared.ID), key: p.key, uid: p.memory.uid, began: p.newest(),
			memo: p.entries.Memo(p.memory.uid)(), stopping: make(chan struct{}), left: make(chan struct{}),
			run: handler.Run{
				Declaration: declared, Reason: declared.Verb, Attempt: 1, Started: time.Now(),
				MaybeRepeated: p.memory.inherited || p.memory.started[declared.ID],
			},
		}
		if d.newest = d.began; p.daemons.add(d) {
			p.memory.started[declared.ID] = true
			go d.live()
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
	p.daemons.stop(p.key, func(d *daemon) error {
		wanted := slices.ContainsFunc(p.plan.Daemons, func(declared handler.Declaration) bool { return declared.ID == d.handler.ID })
		switch {
		case d.uid != p.memory.uid:
			return errObjectGone
		case deleting:
			return ErrObjectDeleted
		case !wanted:
			return errNotForIt
		default:
			return nil
		}
	})
}

// endDaemons waits until all daemons have ended, or are abandoned, after the operator was asked to stop and its passes are
// over. What they have left is written then, unless another replica may act.
func (k *keeper) endDaemons(ctx context.Context) {
	k.daemons.close(k.whyOver())
	for _, d := range k.daemons.all() {
		<-d.left
	}
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

// add adds a daemon, unless there is one in its place, which may have ended, or may be about to.
func (a *daemons) add(d *daemon) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := slices.ContainsFunc(a.byKey[d.key], func(other *daemon) bool { return other.uid == d.uid && other.handler.ID == d.handler.ID })
	if taken || a.closed {
		return false
	}
	if a.byKey == nil {
		a.byKey = map[types.NamespacedName][]*daemon{}
	}
	a.byKey[d.key] = append(a.byKey[d.key], d)
	d.keeper.reports.Metrics.Daemon(d.handler.ID, metrics.Running, 1)
	d.ctx, d.cancel = context.WithCancelCause(context.Background())
	return true
}

// stop tells daemons of an object to stop, for which there is a reason.
func (a *daemons) stop(key types.NamespacedName, why func(*daemon) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range slices.Clone(a.byKey[key]) {
		if reason := why(d); reason != nil {
			a.stopOne(d, reason)
		}
	}
}

// stopOne begins the stages of a daemon's end. One that has ended already makes room. The lock is held.
func (a *daemons) stopOne(d *daemon, reason error) {
	if d.ended {
		a.remove(d)
		return
	}
	if d.stopped {
		return
	}
	d.stopped = true
	close(d.stopping)
	grace := d.handler.StopGrace
	if d.keeper.stopping() {
		grace = min(grace, d.keeper.settings.Grace)
	}
	if d.keeper.election.lost() {
		grace = 0
	}
	if grace == 0 {
		d.cancel(reason)
	} else {
		d.stages = append(d.stages, time.AfterFunc(grace, func() { d.cancel(reason) }))
	}
	if d.handler.Abandon > 0 {
		d.stages = append(d.stages, time.AfterFunc(grace+d.handler.Abandon, d.abandon))
	}
	d.keeper.reports.About(d.key, nil).DaemonStopping(d.handler.ID, reason)
}

// whyOver tells why nothing is handled any more: because the operator stops, or because there is nothing to handle.
func (k *keeper) whyOver() error {
	select {
	case <-k.end:
		return errOperatorStops
	default:
		return errKindRests
	}
}

// close tells all daemons to stop, since nothing is handled any more, for this reason.
func (a *daemons) close(reason error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, ofOne := range a.byKey {
		for _, d := range slices.Clone(ofOne) {
			a.stopOne(d, reason)
		}
	}
}

// end notes that a daemon has returned. If it was asked to stop it makes room, else it stays, so that it is not started again.
func (a *daemons) end(d *daemon) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, stage := range d.stages {
		stage.Stop()
	}
	if d.ended = true; d.stopped {
		a.remove(d)
	}
	if d.abandoned {
		d.keeper.abandonedDaemons.Add(-1)
		d.keeper.reports.Metrics.Daemon(d.handler.ID, metrics.Abandoned, -1)
		return
	}
	d.keeper.reports.Metrics.Daemon(d.handler.ID, metrics.Running, -1)
	close(d.left)
}

// abandon notes that Einmal stops waiting for a daemon. It returns false if the daemon has returned meanwhile.
func (a *daemons) abandon(d *daemon) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.ended {
		return false
	}
	d.abandoned = true
	d.keeper.abandonedDaemons.Add(1)
	d.keeper.reports.Metrics.Daemon(d.handler.ID, metrics.Running, -1)
	d.keeper.reports.Metrics.Daemon(d.handler.ID, metrics.Abandoned, 1)
	close(d.left)
	return true
}

// remove makes room where a daemon was. The lock is held.
func (a *daemons) remove(d *daemon) {
	rest := slices.DeleteFunc(slices.Clone(a.byKey[d.key]), func(other *daemon) bool { return other == d })
	if a.byKey[d.key] = rest; len(rest) == 0 {
		delete(a.byKey, d.key)
	}
}

// hold reports whether a daemon of the object has neither ended nor been abandoned.
func (a *daemons) hold(key types.NamespacedName, uid string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.byKey[key], func(d *daemon) bool { return d.uid == uid && !d.ended && !d.abandoned })
}

func (a *daemons) all() []*daemon {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []*daemon
	for _, ofOne := range a.byKey {
		found = append(found, ofOne...)
	}
	return found
}

// hand takes what a daemon has changed, for the next pass of its object. What an abandoned one has changed is not taken.
func (a *daemons) hand(d *daemon, edits objects.Edits) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.abandoned {
		return false
	}
	edits.UID = d.uid
	d.keeper.entries.PutEdits(d.key, edits)
	return true
}
