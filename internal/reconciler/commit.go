package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/seen"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// saveTries is how often one reconciliation sends its work again after another client was faster.
const saveTries = 5

// committer writes what was done to the object. It goes on from the answer.
type committer struct {
	s      *subject
	reader reader
}

// save writes what a reconciliation did. After a conflict it reads live and folds again; handlers are not run again. What cannot
// be written now stays in memory, and the next reconciliation of the object starts with it. It returns kube.ErrGone if the object does not exist any
// more: then all that goes on for it is ended.
func (c committer) save(ctx context.Context, w *work) error {
	err := c.trySave(ctx, w)
	switch {
	case errors.Is(err, kube.ErrGone):
		if w.answered == nil { // Else the daemon gets the error.
			c.s.memory.unsaved = w // Where the object turns out to be there nevertheless, nothing that was done is lost.
		}
		w.ended = kube.ErrGone
		c.s.goneButShown()
		w.answer(nil, err)
		return kube.ErrGone
	case kube.Denied(err) && len(w.journal.Edits()) == 0: // mutant: denied-record-first
		c.keepDenied(w, err)
		w.answer(nil, err)
		return err
	case err != nil:
		c.s.memory.unsaved = w // mutant: unsaved-forgotten
		return err
	}
	c.s.memory.unsaved = nil
	w.answer(c.s.seen.Raw(), w.journal.Rejection())
	return nil
}

func (c committer) trySave(ctx context.Context, w *work) error {
	var err error
	for range saveTries {
		var contested object.Path
		composed := c.s.seen.Version()
		contested, err = c.send(ctx, w)
		if contested != nil {
			c.rejected(w, w.journal.Contested(contested, time.Now()), func(made journal.Attempt) { c.s.report.ListContested(made.Run, made.Result, contested.String()) })
			continue
		}
		if err == nil || !kube.Refused(err) {
			return err
		}
		if failed := c.reopen(ctx, w, composed, err); failed != nil {
			return failed
		}
	}
	return fmt.Errorf("write %s: conflicts in all attempts, it changes too often: %w", c.s.key, err)
}

// reopen goes on from the live object after a refusal. When no other client has changed it, it is the content that is
// refused: then the work is made smaller, or, if that is not possible, the refusal is returned. Composed is the version that the documents were made for: when a
// second one is refused after the first was written, the object has changed since.
func (c committer) reopen(ctx context.Context, w *work, composed string, refusal error) error {
	newest, err := c.s.r.Server.Get(ctx, c.s.key)
	if err != nil {
		return err
	}
	if object.Text(newest, "metadata", "uid") != c.s.memory.uid {
		return kube.ErrGone
	}
	changed := !c.s.seen.IsLive() || seen.Version(newest) != composed || apierrors.IsConflict(refusal) // 409 never says that the content is wrong.
	conflict := errors.Is(refusal, kube.ErrConflict) && !kube.TooLarge(refusal) && changed
	if !conflict && !c.concede(w, refusal) {
		w.journal.Restore()
		return w.unfit(refusal)
	}
	if conflict {
		c.s.r.Reports.Metrics.Conflict()
	}
	was := c.s.memory.record
	if err := c.reader.openRaw(newest); err != nil {
		return err
	}
	if w.intends && c.s.memory.record != was && c.s.seen.Record().Stored() != w.journal.Text() { // mutant: overtaken-intent
		return attempt.ErrOvertaken
	}
	// What is done is saved, also where a filter cannot tell what is next.
	c.s.plan = c.s.view.Pure.Decide(c.s.state()) // mutant: old-plan-after-conflict
	return nil
}

// send sends what is not sent yet, in at most two requests, and then removes a record that is left in the other carrier. If contested is not nil, nothing was
// sent: another client has changed the same items of this list.
func (c committer) send(ctx context.Context, w *work) (contested object.Path, err error) {
	if err := w.journal.Fold(c.s.view.Pure, c.s.plan, c.s.seen.Record().Stored(), c.s.memory.record); err != nil {
		return nil, err
	}
	target, err := c.target(w)
	if err != nil {
		return nil, err
	}
	edits := w.journal.Changes(target)
	c.countConflict(w, edits)
	documents, contested := w.journal.Documents(target)
	if contested != nil {
		return contested, nil
	}
	c.reportFinalizer(w, target.Removes)
	ctx = kube.WithSetter(ctx, w.journal.Setter)
	if w.journal.Writes(c.s.seen.Record().Stored()) { // mutant: move-not-stored
		if err := c.beginMove(ctx); err != nil {
			return nil, err
		}
	}
	for _, next := range documents {
		answer, err := c.s.r.Server.Patch(ctx, c.s.key, next.Subresource, next.Changes.Operations()) // mutant: patch-without-tests
		if err != nil {
			return nil, err
		}
		w.journal.Accepted(next) // mutant: status-full-update
		if next.Record {
			c.recordStored(w.journal.Text())
		}
		c.acknowledge(answer, edits) // mutant: own-status-write-not-awaited
	}
	c.noteConditions(w)
	c.rememberUnstored(w)
	c.removeFormer(ctx, w, target)
	return nil, nil
}

// recordStored notes the text of the record that the object has now.
func (c committer) recordStored(text string) {
	c.s.memory.record, c.s.memory.denied = text, ""
	c.s.seen = c.s.seen.WithRecord(c.s.seen.Record().Written(text))
	c.s.noteRecorded()
}

// acknowledge goes on from the object as our write has left it.
func (c committer) acknowledge(answer object.Body, edits []patch.Edit) {
	c.s.seen = c.s.seen.Answered(answer)
	c.s.memory.freshness.wrote(answer, c.s.shown, time.Now())
	c.s.memory.ours = c.s.seen.Version()
	c.s.memory.conflicts.note(answer, edits)
}
