package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/seen"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// saveTries is how often one pass sends its work again after another client was faster.
const saveTries = 5

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
	case kube.Denied(err) && len(w.journal.Edits()) == 0: // mutant: denied-record-first
		p.keepDenied(w, err)
		w.answer(nil, err)
		return err
	case err != nil:
		p.memory.unsaved = w // mutant: unsaved-forgotten
		return err
	}
	p.memory.unsaved = nil
	w.answer(p.seen.Raw(), w.journal.Rejection())
	return nil
}

func (p *pass) trySave(ctx context.Context, w *work) error {
	var err error
	for range saveTries {
		var contested object.Path
		composed := p.seen.Version()
		contested, err = p.send(ctx, w)
		if contested != nil {
			p.rejected(w, w.journal.Contested(contested, time.Now()), func(made journal.Attempt) { p.report.ListContested(made.Run, made.Result, contested.String()) })
			continue
		}
		if err == nil || !kube.Refused(err) {
			return err
		}
		if failed := p.reopen(ctx, w, composed, err); failed != nil {
			return failed
		}
	}
	return fmt.Errorf("write %s: conflicts in all attempts, it changes too often: %w", p.key, err)
}

// reopen goes on from the live object after a refusal. When no other client has changed it, it is the content that is
// refused: then the work is made smaller, or, if that is not possible, the refusal is returned. Composed is the version that the documents were made for: when a
// second one is refused after the first was written, the object has changed since.
func (p *pass) reopen(ctx context.Context, w *work, composed string, refusal error) error {
	newest, err := p.r.Server.Get(ctx, p.key)
	if err != nil {
		return err
	}
	if object.Text(newest, "metadata", "uid") != p.memory.uid {
		return kube.ErrGone
	}
	changed := !p.seen.IsLive() || seen.Version(newest) != composed || apierrors.IsConflict(refusal) // 409 never says that the content is wrong.
	conflict := errors.Is(refusal, kube.ErrConflict) && !kube.TooLarge(refusal) && changed
	if !conflict && !p.concede(w, refusal) {
		w.journal.Restore()
		return w.unfit(refusal)
	}
	if conflict {
		p.r.Reports.Metrics.Conflict()
	}
	was := p.memory.record
	if err := p.openRaw(newest); err != nil {
		return err
	}
	if w.intends && p.memory.record != was && p.seen.Record().Stored() != w.journal.Text() { // mutant: overtaken-intent
		return attempt.ErrOvertaken
	}
	// What is done is saved, also where a filter cannot tell what is next.
	p.plan = p.view.Pure.Decide(p.state()) // mutant: old-plan-after-conflict
	return nil
}

// send sends what is not sent yet, in at most two requests, and then removes a record that is left in the other carrier. If contested is not nil, nothing was
// sent: another client has changed the same items of this list.
func (p *pass) send(ctx context.Context, w *work) (contested object.Path, err error) {
	if err := w.journal.Fold(p.view.Pure, p.plan, p.seen.Record().Stored(), p.memory.record); err != nil {
		return nil, err
	}
	target, err := p.target(w)
	if err != nil {
		return nil, err
	}
	edits := w.journal.Changes(target)
	p.countConflict(w, edits)
	documents, contested := w.journal.Documents(target)
	if contested != nil {
		return contested, nil
	}
	p.reportFinalizer(w, target.Removes)
	ctx = kube.WithSetter(ctx, w.journal.Setter)
	if w.journal.Writes(p.seen.Record().Stored()) { // mutant: move-not-stored
		if err := p.beginMove(ctx); err != nil {
			return nil, err
		}
	}
	for _, next := range documents {
		answer, err := p.r.Server.Patch(ctx, p.key, next.Subresource, next.Changes.Operations()) // mutant: patch-without-tests
		if err != nil {
			return nil, err
		}
		w.journal.Accepted(next) // mutant: status-full-update
		if next.Record {
			p.recordStored(w.journal.Text())
		}
		p.acknowledge(answer, edits) // mutant: own-status-write-not-awaited
	}
	p.noteConditions(w)
	p.rememberUnstored(w)
	p.removeFormer(ctx, w, target)
	return nil, nil
}

// target is the object as documents change it.
func (p *pass) target(w *work) (journal.Target, error) {
	typed, err := p.typed(w)
	if err != nil {
		return journal.Target{}, err
	}
	removes := w.journal.Finalizer() == handler.Remove || p.marked() && w.journal.Record().Deleted && !p.r.daemons.Hold(p.key, p.memory.uid)
	target := journal.Target{
		Base: p.seen.Raw(), Seen: typed, HasStatus: p.view.Description.HasStatus, Carrier: p.view.Description.Carrier,
		Identity: p.r.Settings.Identity, Finalizer: p.r.Settings.Finalizer(), Stored: p.seen.Record().Stored(), Removes: removes,
		Released: removes && len(object.List(p.seen.Raw(), "metadata", "finalizers")) == 1 && p.plan.Cause == cause.Delete, // mutant: deletion-not-recorded
		Now:      time.Now(),
	}
	if w.journal.Writes(p.seen.Record().Stored()) {
		target.Conditions = p.conditions(w)
	}
	return target, nil
}

// reportFinalizer reports what becomes of the finalizer. From the request on, the removal counts.
func (p *pass) reportFinalizer(w *work, removes bool) {
	switch {
	case removes:
		p.report.Log.Info("removing the finalizer", "finalizer", p.r.Settings.Finalizer())
		p.memory.released = object.Text(p.seen.Raw(), "metadata", "deletionTimestamp") != "" // mutant: release-forgotten
	case w.journal.Finalizer() == handler.Add:
		p.report.Log.Info("adding the finalizer", "finalizer", p.r.Settings.Finalizer())
	}
}

// recordStored notes the text of the record that the object has now.
func (p *pass) recordStored(text string) {
	p.memory.record, p.memory.denied = text, ""
	p.seen = p.seen.WithRecord(p.seen.Record().Written(text))
	p.noteRecorded()
}

// acknowledge goes on from the object as our write has left it.
func (p *pass) acknowledge(answer object.Body, edits []patch.Edit) {
	p.seen = p.seen.Answered(answer)
	p.memory.freshness.wrote(answer, p.shown, time.Now())
	p.memory.ours = p.seen.Version()
	p.memory.conflicts.note(answer, edits)
}

// typed returns the object that documents are computed from in the form that the Go type of the handlers writes. Only changes of lists need
// that form.
func (p *pass) typed(w *work) (object.Body, error) {
	changesList := func(edit patch.Edit) bool { return edit.List != nil }
	switch {
	case !slices.ContainsFunc(w.journal.Edits(), changesList):
		return p.seen.Raw(), nil
	case !p.seen.IsLive():
		return p.seen.Body(), nil
	}
	typed, err := p.canonical(p.seen.Raw())
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", p.key, err)
	}
	return typed, nil
}
