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
func (p *pass) steps(run handler.Run, mail *attempt.Mailbox) *attempt.Steps {
	if !run.Recorded() {
		return nil
	}
	body := p.seen.Body() // A newer one may be read while the handler runs.
	return attempt.NewSteps(attempt.Options{
		Concurrency: p.r.Kind.Handler(run.ID).Concurrency,
		Refused:     func(before, after object.Body) error { return p.view.Refused(run.ID, before, after) },
		Hides:       func(text string) bool { return p.r.Reports.Redact(text, body) != text },
		Done:        run.Steps,
		Effects:     p.effects(run),
	}, mail)
}

// effects returns what is known of effects before an attempt.
func (p *pass) effects(run handler.Run) attempt.Effects {
	uid, recreated := p.memory.uid, p.plan.Record.Recreated
	return attempt.Effects{
		Object:     p.r.Kind.GVK.Kind + " " + p.key.String(),
		Annotation: func(token string) string { return object.EffectAnnotation(p.r.Settings.Identity, token) },
		Name:       func(id string) (string, bool) { return run.EffectName(uid, recreated, id) },
		Words:      run.Words, Stored: p.seen.Record().InPlace(), Repeated: run.MaybeRepeated, Doubted: p.plan.Record.Doubted || p.memory.unsure, Times: &p.memory.intents,
	}
}

// note notes what came of an attempt, or of a part of it, in the place of what was noted of an earlier part of it.
func (p *pass) note(w *work, made journal.Attempt, edits []patch.Edit) {
	p.reportTouches(made.Run, edits, w.journal.Add(made, edits))
}

// since returns what a handler has changed since its changes were taken last: base is nil if none were.
func (p *pass) since(base object.Body, call *attempt.Call, left object.Body) []patch.Edit {
	if base == nil {
		base = call.Given
	}
	return p.view.Edits(base, left)
}

// saveMeanwhile saves what is done while a handler goes on: by handlers before it, and by its own steps.
func (p *pass) saveMeanwhile(ctx context.Context, w *work, call *attempt.Call) error {
	if taken, is := call.Steps.Take(); is {
		p.note(w, journal.Attempt{
			Run: call.Run, Result: handler.Result{Outcome: record.Pending, Steps: taken.Done}, Changing: taken.Changing,
			Seen: p.r.essence(patch.Apply(call.Given, p.view.Edits(call.Given, taken.Left))), At: time.Now(),
		}, p.since(taken.Base, call, taken.Left))
		defer func() {
			if len(w.journal.Attempts()) == 0 {
				call.Steps.Written(taken.Changing)
			}
		}()
	}
	if len(w.journal.Attempts()) == 0 {
		return nil
	}
	err := p.flush(ctx, w)
	if err != nil && w.ended == nil {
		p.report.Log.Warn("cannot save progress, kept in memory", "error", p.r.Reports.RedactError(err, p.seen.Body()))
	}
	return err
}

// declare stores the intents that the handler waits for, with what else is done, and tells it what came of that.
func (p *pass) declare(ctx context.Context, w *work, call *attempt.Call) {
	if call.Steps.Concurrent() {
		<-time.After(gathering)
	}
	asked := call.Mail.TakeEffects()
	if len(asked) == 0 {
		return // They went with others.
	}
	w.intends = true
	err := p.saveMeanwhile(ctx, w, call)
	w.intends = false
	for _, effect := range asked {
		if err == nil {
			err = p.declared(call.ID, effect)
		}
		if errors.Is(err, attempt.ErrOvertaken) {
			call.Mail.Close(err)
		}
		effect.Answer(err)
	}
}

// declared reports whether an intent is in the record that is stored.
func (p *pass) declared(id string, effect attempt.Waiting) error {
	kept := p.plan.Record.Handlers[id].Steps[effect.ID].Intent
	text, err := p.plan.Record.Encode()
	if err == nil && (kept == nil || !kept.Same(effect.Intent) || kept.Void || text != p.seen.Record().Stored()) {
		err = attempt.ErrOvertaken
	}
	return err
}

// discardAttempt drops what this process has noted of an attempt, because another process has written the record since.
func (p *pass) discardAttempt(w *work, run handler.Run) {
	p.report.Log.Warn("another replica has reconciled the object, attempt not counted", "handler", run.ID, "attempt", run.Attempt)
	w.ended = attempt.ErrOvertaken
	w.journal.Drop(run)
	if len(w.journal.Attempts()) == 0 && p.memory.unsaved == w {
		p.memory.unsaved = nil
	}
}
