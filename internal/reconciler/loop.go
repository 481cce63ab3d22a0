package reconciler

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/objects"
)

// loop takes the object through one reconciliation.
type loop struct {
	subject   subject
	s         *subject // points to subject
	reader    reader
	committer committer
	caller    caller
	// held is until when conflicting writes hold the object back; zero for not at all.
	held time.Time
}

// newLoop returns the loop for an object.
func newLoop(r *Reconciler, key types.NamespacedName) *loop {
	l := &loop{}
	l.subject = subject{r: r, view: r.Views.Now(), key: key, report: r.Reports.About(key, nil)}
	l.s = &l.subject
	l.reader = reader{l.s}
	l.committer = committer{l.s, l.reader}
	l.caller = caller{l.s, l.committer}
	return l
}

// reconcile takes an object through one reconciliation. It returns when the next one is due, or zero if only an event leads to one.
func (r *Reconciler) reconcile(ctx context.Context, key types.NamespacedName) (time.Time, error) {
	l := newLoop(r, key)
	wait, err := l.reader.read(ctx)
	if errors.Is(err, kube.ErrGone) {
		if errors.Is(err, errUnseen) {
			l.s.gone()
		} else {
			l.s.goneButShown()
		}
		r.FirstList.Done(key)
		return time.Time{}, nil
	}
	if _, undecodable := errors.AsType[*kube.UndecodableError](err); undecodable || errors.Is(err, errOver) {
		r.FirstList.Done(key) // What cannot be decoded comes again when it is corrected.
		return wait, nil
	}
	if err != nil || !wait.IsZero() { // The first reconciliation of the object is still to come.
		return wait, err // mutant: waiting-is-a-pass
	}
	wake, err := l.look(ctx)
	if errors.Is(err, kube.ErrGone) {
		wake, err = time.Time{}, nil
	}
	if err == nil {
		r.FirstList.Done(key)
	}
	return wake, err
}

// look decides what to do with the object that was read, and does it. It returns when to look again, and kube.ErrGone if the object turned out not
// to exist any more.
func (l *loop) look(ctx context.Context) (time.Time, error) {
	if l.s.memory.freshness.over {
		return time.Time{}, nil
	}
	undecided := l.s.decide()
	if unsaved := l.s.memory.unsaved; unsaved != nil {
		return time.Now(), l.committer.save(ctx, unsaved)
	}
	if undecided != nil {
		return time.Time{}, undecided
	}
	l.stopDaemons()
	l.held = l.s.conflictPause()
	if l.held.IsZero() {
		if handed, is := l.s.r.State.Objects.TakeEdits(l.s.key, l.s.memory.uid); is {
			return time.Now(), l.deliver(ctx, handed)
		}
	}
	if l.skipUnmatched() {
		l.s.r.Reports.Metrics.Settled(l.s.key.String())
		return time.Time{}, nil
	}
	if l.held.IsZero() || l.s.plan.Finalizer == handler.Add { // mutant: pause-delays-finalizer
		return l.act(ctx)
	}
	return l.held, nil
}

// act does what is planned. It returns when to look again.
func (l *loop) act(ctx context.Context) (time.Time, error) {
	if err := l.reader.refreshBeforeRun(ctx); err != nil {
		if errors.Is(err, kube.ErrGone) {
			l.s.goneButShown()
		}
		return time.Time{}, err
	}
	l.reportPlan()
	l.noteResumed()
	if l.s.plan.Finalizer == handler.Add { // mutant: finalizer-after-effect
		if err := l.mark(ctx); err != nil {
			return time.Time{}, err
		}
		if err := l.s.decide(); err != nil || !l.held.IsZero() {
			return l.held, err
		}
	}
	l.s.chained = l.s.followsOwnWrite()
	done, err := l.caller.run(ctx)
	if err == nil {
		err = l.committer.save(ctx, done)
	}
	if err != nil {
		return time.Time{}, err
	}
	l.notePending(done)
	l.startDaemons() //nolint:contextcheck // They live longer than the reconciliation.
	return l.s.memory.withRemoval(l.next(done)), nil
}

// mark adds our finalizer before any handler runs, and puts a lost record back where that is the same write. The reconciliation
// goes on with the answer.
func (l *loop) mark(ctx context.Context) error {
	found := l.s.seen.Record()
	lost := found.Value() != nil && !found.InPlace() && journal.Resource(l.s.view.Description.Carrier, l.s.view.Description.HasStatus) == ""
	w := &work{journal: journal.OnlyFinalizer(l.s.about(l.s.seen.Body()), l.s.plan.Record, !lost)}
	if err := l.committer.save(ctx, w); err != nil {
		return err
	}
	return l.reader.openRaw(l.s.seen.Raw())
}

// next tells when to look again, after what was done: at once if something more is due.
func (l *loop) next(done *work) time.Time {
	if l.s.plan.Cause == cause.Free {
		return time.Time{}
	}
	if done.canceled {
		return time.Now()
	}
	if !done.attempted {
		l.s.memory.inherited, l.s.memory.older = false, false
		l.s.memory.unsure = l.s.memory.unsure && l.s.plan.Record.Open()
		return l.s.plan.Wake
	}
	state := l.s.state()
	if state.Essence = done.journal.Current(); !l.s.plan.Unrecorded {
		stored := done.journal.Record()
		state.Record = &stored
	}
	following := l.s.view.Pure.Decide(state)
	if len(following.Runs) > 0 || len(following.GivenUp) > 0 || following.Err != nil {
		return state.Now
	}
	return following.Wake
}

// deliver writes what a daemon has handed in.
func (l *loop) deliver(ctx context.Context, handed objects.Edits) error {
	w := &work{journal: journal.New(l.s.about(l.s.seen.Body()), handler.Keep, l.s.plan.Record, true), answered: handed.Answer}
	l.s.reportTouches(handed.Run, handed.Edits, w.journal.AddEdits(handed.Run.ID, handed.Edits))
	err := l.committer.save(ctx, w)
	if rejection := w.journal.Rejection(); rejection != nil && handed.Answer == nil {
		l.s.report.Log.Error("last changes of daemon not written", "handler", handed.Run.ID, "error", rejection)
	}
	return err
}

// skipUnmatched reports whether no handler matches the object. Such an object gets no log lines and no writes, and is forgotten.
func (l *loop) skipUnmatched() bool {
	if l.s.plan.Cause != cause.Unmatched || l.s.plan.Finalizer != handler.Keep {
		return false
	}
	l.s.r.State.Objects.Forget(l.s.key)
	l.s.r.State.Objects.DropTriggers(l.s.key)
	return true
}
