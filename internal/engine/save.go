package engine

import (
	"context"
	"errors"
	"fmt"
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

// request is one document and where it goes.
type request struct {
	subresource string
	document    *patch.Document
	edits       []patch.Edit
	sent        func()
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
	requests, err := p.requests(w, text)
	if err != nil {
		return err
	}
	if !w.keepRecord && text != p.stored { // mutant: move-not-stored
		if err := p.beginMove(ctx); err != nil {
			return err
		}
	}
	for _, next := range requests {
		if next.document.Empty() {
			continue
		}
		answer, err := p.objects.Patch(ctx, p.key, next.subresource, next.document.Operations()) // mutant: patch-without-tests
		if err != nil {
			return err
		}
		next.sent()
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

// requests composes the documents. The record goes last, so that it never says more than what is written; only a
// finalizer goes after it. A contestedError names a list in which another client has changed the same items.
func (p *pass) requests(w *work, text string) ([]request, error) {
	seen, err := p.seen(w)
	if err != nil {
		return nil, err
	}
	main := request{document: patch.Seen(p.base, seen), edits: w.rest}
	status := request{subresource: statusResource, document: patch.Seen(p.base, seen), edits: w.status}
	if !p.description.HasStatus {
		main.edits, status.edits = append(append([]patch.Edit{}, w.rest...), w.status...), nil
	}
	for _, composed := range []*request{&main, &status} {
		for _, edit := range composed.edits {
			composed.document.Edit(edit)
		}
		if field := composed.document.Contested(); field != nil {
			return nil, &contestedError{field}
		}
	}
	status.sent = func() {
		w.written, w.status = patch.Apply(w.written, status.edits), nil
	}
	main.sent = func() {
		w.written = patch.Apply(w.written, main.edits)
		if w.rest, w.finalizer = nil, handler.Keep; !p.description.HasStatus {
			w.status = nil
		}
	}
	p.compose(w, text, &main, &status)
	if p.recordResource() == statusResource && !p.removing(w) { // mutant: finalizer-before-record
		return []request{main, status}, nil
	}
	return []request{status, main}, nil
}

// compose adds the finalizer and the record to the documents.
func (p *pass) compose(w *work, text string, main, status *request) {
	removing := p.removing(w)
	switch {
	case removing:
		p.report.Log.Info("removing the finalizer", "finalizer", p.settings.Finalizer())
		main.document.RemoveFinalizer(p.settings.Finalizer())
		p.memory.released = object.Text(p.base, "metadata", "deletionTimestamp") != "" // mutant: release-forgotten
	case w.finalizer == handler.Add:
		p.report.Log.Info("adding the finalizer", "finalizer", p.settings.Finalizer())
		main.document.AddFinalizer(p.settings.Finalizer())
	}
	released := removing && len(object.List(p.base, "metadata", "finalizers")) == 1 && p.plan.Cause == cause.Delete // mutant: deletion-not-recorded
	if w.keepRecord || released || text == p.stored {
		return
	}
	carrier := main
	if p.recordResource() == statusResource {
		carrier = status
	}
	p.composeRecord(w, text, carrier) // mutant: former-removed-first
	p.markConditions(w, p.statusOf(main, status).document)
}

// statusOf is the request that carries the status.
func (p *pass) statusOf(main, status *request) *request {
	if p.description.HasStatus {
		return status
	}
	return main
}

// removing reports whether the finalizer goes with this work.
func (p *pass) removing(w *work) bool {
	return w.finalizer == handler.Remove || p.marked() && w.record.Deleted && !p.daemons.hold(p.key, p.memory.uid)
}

func version(body object.Body) string { return object.Text(body, "metadata", "resourceVersion") }
