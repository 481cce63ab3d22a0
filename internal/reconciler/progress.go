package reconciler

import (
	"context"
	"errors"
	"time"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// gathering is how long the intents of items that run at the same time are gathered, so that they go with one write.
const gathering = 5 * time.Millisecond

// steps returns those of a run, or nil for a handler of which nothing is recorded.
func (a caller) steps(run handler.Run, mail *attempt.Mailbox) *attempt.Steps {
	if !run.Recorded() {
		return nil
	}
	body := a.s.seen.Body() // A newer one may be read while the handler runs.
	return attempt.NewSteps(attempt.Options{
		Concurrency: a.s.r.Kind.Handler(run.ID).Concurrency,
		Refused:     func(before, after object.Body) error { return a.s.view.Refused(run.ID, before, after) },
		Hides:       func(text string) bool { return a.s.r.Reports.Redact(text, body) != text },
		Done:        run.Steps,
		Effects:     a.effects(run),
	}, mail)
}

// effects returns what is known of effects before an attempt.
func (a caller) effects(run handler.Run) attempt.Effects {
	uid, recreated := a.s.memory.uid, a.s.plan.Record.Recreated
	return attempt.Effects{
		Object:     a.s.r.Kind.GVK.Kind + " " + a.s.key.String(),
		Annotation: func(token string) string { return object.EffectAnnotation(a.s.r.Settings.Identity, token) },
		Name:       func(id string) (string, bool) { return run.EffectName(uid, recreated, id) },
		Words:      run.Words, Stored: a.s.seen.Record().InPlace(), Repeated: run.MaybeRepeated, Doubted: a.s.plan.Record.Doubted || a.s.memory.unsure, Times: &a.s.memory.intents,
	}
}

// note notes what came of an attempt, or of a part of it, in the place of what was noted of an earlier part of it.
func (a caller) note(w *work, made journal.Attempt, edits []patch.Edit) {
	a.s.reportTouches(made.Run, edits, w.journal.Add(made, edits))
}

// since returns what a handler has changed since its changes were taken last: base is nil if none were.
func (a caller) since(base object.Body, call *attempt.Call, left object.Body) []patch.Edit {
	if base == nil {
		base = call.Given
	}
	return a.s.view.Edits(base, left)
}

// saveMeanwhile saves what is done while a handler goes on: by handlers before it, and by its own steps.
func (a caller) saveMeanwhile(ctx context.Context, w *work, call *attempt.Call) error {
	if taken, is := call.Steps.Take(); is {
		a.note(w, journal.Attempt{
			Run: call.Run, Result: handler.Result{Outcome: record.Pending, Steps: taken.Done}, Changing: taken.Changing,
			Seen: a.s.r.essence(patch.Apply(call.Given, a.s.view.Edits(call.Given, taken.Left))), At: time.Now(),
		}, a.since(taken.Base, call, taken.Left))
		defer func() {
			if len(w.journal.Attempts()) == 0 {
				call.Steps.Written(taken.Changing)
			}
		}()
	}
	if len(w.journal.Attempts()) == 0 {
		return nil
	}
	err := a.flush(ctx, w)
	if err != nil && w.ended == nil {
		a.s.report.Log.Warn("cannot save progress, kept in memory", "error", a.s.r.Reports.RedactError(err, a.s.seen.Body()))
	}
	return err
}

// declare stores the intents that the handler waits for, with what else is done, and tells it what came of that.
func (a caller) declare(ctx context.Context, w *work, call *attempt.Call) {
	if call.Steps.Concurrent() {
		<-time.After(gathering)
	}
	asked := call.Mail.TakeEffects()
	if len(asked) == 0 {
		return // They went with others.
	}
	w.intends = true
	err := a.saveMeanwhile(ctx, w, call)
	w.intends = false
	for _, effect := range asked {
		if err == nil {
			err = a.declared(call.ID, effect)
		}
		if errors.Is(err, attempt.ErrOvertaken) {
			call.Mail.Close(err)
		}
		effect.Answer(err)
	}
}

// declared reports whether an intent is in the record that is stored.
func (a caller) declared(id string, effect attempt.Waiting) error {
	kept := a.s.plan.Record.Handlers[id].Steps[effect.ID].Intent
	text, err := a.s.plan.Record.Encode()
	if err == nil && (kept == nil || !kept.Same(effect.Intent) || kept.Void || text != a.s.seen.Record().Stored()) {
		err = attempt.ErrOvertaken
	}
	return err
}

// discardAttempt drops what this process has noted of an attempt, because another process has written the record since.
func (a caller) discardAttempt(w *work, run handler.Run) {
	a.s.report.Log.Warn("another replica has reconciled the object, attempt not counted", "handler", run.ID, "attempt", run.Attempt)
	w.ended = attempt.ErrOvertaken
	w.journal.Drop(run)
	if len(w.journal.Attempts()) == 0 && a.s.memory.unsaved == w {
		a.s.memory.unsaved = nil
	}
}

// flush saves the outcomes so far, in the middle of a reconciliation.
func (a caller) flush(ctx context.Context, w *work) error {
	if err := a.committer.save(ctx, w); err != nil {
		return err
	}
	a.s.plan.Record = w.journal.Stored()
	a.s.seen = a.s.seen.WithRecord(a.s.seen.Record().Saved(a.s.plan.Record))
	return nil
}
