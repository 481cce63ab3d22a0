package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// saveTries is how often one pass sends its work again after another client was faster.
const saveTries = 5

// statusResource is the subresource that status writes go to.
const statusResource = "status"

// document is one request that stores work, and says what of it is stored once the API server has accepted it.
type document struct {
	subresource string
	changes     *patch.Document
	// edits are those of handlers. rest and status tell which parts of the object they cover: if a kind has no subresource for the status, both are in one
	// document.
	edits        []patch.Edit
	rest, status bool
	// record: it stores the record of the work.
	record bool
}

// save writes what a pass did. After a conflict it reads live and folds again; handlers are not run again. What cannot
// be written now stays in memory, and the next pass of the object starts with it. It returns kube.ErrGone if the object does not exist any
// more: then all that goes on for it is ended.
func (p *pass) save(ctx context.Context, w *work) error {
	err := p.trySave(ctx, w)
	switch {
	case errors.Is(err, kube.ErrGone):
		if w.answered == nil { // Else the daemon gets the error.
			p.memory.unsaved = w // Where the object turns out to be there nevertheless, nothing that was done is lost.
		}
		w.ended = kube.ErrGone
		p.goneButShown()
		w.answer(nil, err)
		return kube.ErrGone
	case kube.Denied(err) && len(w.rest) == 0 && len(w.status) == 0: // mutant: denied-record-first
		p.keepDenied(w, err)
		w.answer(nil, err)
		return err
	case err != nil:
		p.memory.unsaved = w // mutant: unsaved-forgotten
		return err
	}
	p.memory.unsaved = nil
	w.answer(p.base, w.refusal)
	return nil
}

func (p *pass) trySave(ctx context.Context, w *work) error {
	var err error
	for range saveTries {
		err = p.send(ctx, w)
		if contested, is := errors.AsType[*contestedError](err); is {
			w.giveUp(p, contested)
			continue
		}
		if err == nil || !kube.Refused(err) {
			return err
		}
		if failed := p.reopen(ctx, w, err); failed != nil {
			return failed
		}
	}
	return fmt.Errorf("write %s: conflicts in all attempts, it changes too often: %w", p.key, err)
}

// reopen goes on from the live object after a refusal. When no other client has changed it, it is the content that is
// refused: then the work is made smaller, or, if that is not possible, the refusal is returned.
func (p *pass) reopen(ctx context.Context, w *work, refusal error) error {
	newest, err := p.objects.Get(ctx, p.key)
	if err != nil {
		return err
	}
	if object.Text(newest, "metadata", "uid") != p.memory.uid {
		return kube.ErrGone
	}
	changed := !p.exact || version(newest) != p.composed || apierrors.IsConflict(refusal) // 409 never says that the content is wrong.
	conflict := errors.Is(refusal, kube.ErrConflict) && !kube.TooLarge(refusal) && changed
	if !conflict && !p.concede(w, refusal) {
		w.reduction = handler.Complete // Another time there may be room for all of it.
		return w.unfit(refusal)
	}
	if conflict {
		p.reports.Metrics.Conflict()
	}
	was := p.known()
	if err := p.openRaw(newest); err != nil {
		return err
	}
	if w.intends && p.known() != was && p.stored != w.sent { // mutant: overtaken-intent
		return errOvertaken
	}
	// What is done is saved, also where a filter cannot tell what is next.
	p.plan = p.pure.Decide(p.state()) // mutant: old-plan-after-conflict
	return nil
}

// send sends what is not sent yet, in at most two requests, and then removes a record that is left in the other carrier.
func (p *pass) send(ctx context.Context, w *work) error {
	p.updateFinalizer(w)
	w.record = p.pure.Reduce(w.fold(p.pure, p.plan.Record), w.reduction)
	text, err := p.encode(w)
	if err != nil {
		return err
	}
	p.composed, w.sent = version(p.base), text
	edits := p.changedFields(w, text)
	p.countConflict(w, edits)
	ctx = kube.WithSetter(ctx, w.setter)
	documents, err := p.documents(w, text)
	if err != nil {
		return err
	}
	if !w.keepRecord && text != p.stored { // mutant: move-not-stored
		if err := p.beginMove(ctx); err != nil {
			return err
		}
	}
	for _, next := range documents {
		if next.changes.Empty() {
			continue
		}
		answer, err := p.objects.Patch(ctx, p.key, next.subresource, next.changes.Operations()) // mutant: patch-without-tests
		if err != nil {
			return err
		}
		w.accepted(next)
		if next.record {
			p.stores(w.sent)
		}
		p.base, p.exact = answer, true // mutant: status-full-update
		p.acknowledge(answer, edits)   // mutant: own-status-write-not-awaited
	}
	p.noteConditions(w)
	p.rememberUnstored(w, text)
	p.removeFormer(ctx, w)
	return nil
}

// encode returns the text of the work's record. A record with new content gets the next number, one that is put back keeps its own.
func (p *pass) encode(w *work) (string, error) {
	text, err := w.record.Encode()
	if err != nil || w.keepRecord || text == p.stored || text == p.memory.record {
		return text, err
	}
	w.record.Writes++ // mutant: record-not-counted
	return w.record.Encode()
}

// accepted notes that the API server has accepted a document.
func (w *work) accepted(d document) {
	w.written = patch.Apply(w.written, d.edits)
	if d.rest {
		w.rest, w.finalizer = nil, handler.Keep
	}
	if d.status {
		w.status = nil
	}
}

// stores notes the text of the record that the object has now.
func (p *pass) stores(text string) {
	p.memory.record, p.memory.denied, p.stored, p.inPlace = text, "", text, true
	p.noteRecorded()
}

// acknowledge notes the object as our write has left it.
func (p *pass) acknowledge(answer object.Body, edits []patch.Edit) {
	p.awaitCache(answer)
	p.memory.over, p.memory.recheck = object.Ended(answer), time.Time{} // mutant: pod-gone-before-grace-period
	p.memory.ours = version(answer)
	p.memory.conflicts.note(answer, edits)
}

// updateFinalizer keeps of the work what the newest plan still wants done with the finalizer: the object may have changed since
// the work was done. The API server accepts no new finalizer on an object that is being deleted.
func (p *pass) updateFinalizer(w *work) {
	if w.finalizer == handler.Keep || w.finalizer == p.plan.Finalizer { // mutant: old-removal
		return
	}
	w.finalizer = handler.Keep // mutant: old-finalizer
	w.keepRecord = w.keepRecord || w.marks
}

// documents composes at most two documents. The record goes last, so that it never says more than what is written; only a
// finalizer goes after it. A contestedError names a list in which another client has changed the same items.
func (p *pass) documents(w *work, text string) ([]document, error) {
	seen, err := p.seen(w)
	if err != nil {
		return nil, err
	}
	main := document{changes: patch.Seen(p.base, seen), edits: w.rest, rest: true}
	status := document{subresource: statusResource, changes: patch.Seen(p.base, seen), edits: w.status, status: true}
	if !p.description.HasStatus {
		main.edits, main.status, status.edits = slices.Concat(w.rest, w.status), true, nil
	}
	for _, composed := range []document{main, status} {
		for _, edit := range composed.edits {
			composed.changes.Edit(edit)
		}
		if field := composed.changes.Contested(); field != nil {
			return nil, &contestedError{field}
		}
	}
	removing := p.removing(w)
	p.composeFinalizer(w, removing, main.changes)
	released := removing && len(object.List(p.base, "metadata", "finalizers")) == 1 && p.plan.Cause == cause.Delete // mutant: deletion-not-recorded
	if !w.keepRecord && !released && text != p.stored {
		p.composeRecord(w, text, &main, &status) // mutant: former-removed-first
	}
	if p.recordResource() == statusResource && !removing { // mutant: finalizer-before-record
		return []document{main, status}, nil
	}
	return []document{status, main}, nil
}

// composeFinalizer adds or removes the finalizer.
func (p *pass) composeFinalizer(w *work, removing bool, changes *patch.Document) {
	switch {
	case removing:
		p.report.Log.Info("removing the finalizer", "finalizer", p.settings.Finalizer())
		changes.RemoveFinalizer(p.settings.Finalizer())
		p.memory.released = object.Text(p.base, "metadata", "deletionTimestamp") != "" // mutant: release-forgotten
	case w.finalizer == handler.Add:
		p.report.Log.Info("adding the finalizer", "finalizer", p.settings.Finalizer())
		changes.AddFinalizer(p.settings.Finalizer())
	}
}

// removing reports whether the finalizer goes with this work.
func (p *pass) removing(w *work) bool {
	return w.finalizer == handler.Remove || p.marked() && w.record.Deleted && !p.daemons.hold(p.key, p.memory.uid)
}

func version(body object.Body) string { return object.Text(body, "metadata", "resourceVersion") }
