package engine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// errOvertaken tells that another process has written the record of the object since this one has read it: what is known of
// the handler is old, and nothing may be called because of it.
var errOvertaken = errors.New("another replica has reconciled the object in the meantime; nothing was called and the handler runs again")

// gathering is how long the intents of items that run at the same time are gathered, so that they go with one write.
const gathering = 5 * time.Millisecond

// effects is what a pass knows of the effects of one attempt.
type effects struct {
	// about is the object, for people; annotation names the one by which a person says what came of the effect with a token.
	about      string
	annotation func(token string) string
	// name names an effect, where it is the only one that the object ever has by that name.
	name  func(id string) (string, bool)
	words map[string]string
	// stored tells that the record is where it was read from. Repeated and doubted are as in record.Found.
	stored, repeated, doubted bool
	times                     *intentTimes
}

// intentTimes is when this process saw the intents of an object and ended its calls. An intent that is declared again keeps its token, so
// the key is who declared it: an end of a call is not known of the next one. The zero value is ready to use.
type intentTimes struct {
	mu           sync.Mutex
	since, ended map[string]time.Time
}

// of returns when an intent was first seen, which is now if it is new, and when the last call for it ended, or zero.
func (t *intentTimes) of(intent record.Intent, now time.Time) (since, ended time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since == nil {
		t.since, t.ended = map[string]time.Time{}, map[string]time.Time{}
	}
	if t.since[intent.By].IsZero() {
		t.since[intent.By] = now
	}
	return t.since[intent.By], t.ended[intent.By]
}

// called notes that a call has ended without a result.
func (t *intentTimes) called(intent record.Intent, now time.Time) {
	t.of(intent, now)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended[intent.By] = now
}

// waiting is an effect that waits for its intent to be stored.
type waiting struct {
	id     string
	intent record.Intent
	answer chan<- error
}

// effects is what is known before an attempt.
func (p *pass) effects(run handler.Run) effects {
	uid, recreated := p.memory.uid, p.plan.Record.Recreated
	return effects{
		about:      p.kind.GVK.Kind + " " + p.key.String(),
		annotation: func(token string) string { return object.EffectAnnotation(p.settings.Identity, token) },
		name:       func(id string) (string, bool) { return run.EffectName(uid, recreated, id) },
		words:      run.Words, stored: p.seen.Record().InPlace(), repeated: run.MaybeRepeated, doubted: p.plan.Record.Doubted || p.memory.unsure, times: &p.memory.intents,
	}
}

// known is the text of the record that this pass goes on from: the stored one, or the one that is to be put back.
func (p *pass) known() string { return p.memory.record }

// Effect is how an effect stands.
func (s *Steps) Effect(id string) record.Found {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := record.Found{Now: time.Now(), Stored: s.effects.stored, Repeated: s.effects.repeated, Doubted: s.effects.doubted}
	if found.Intent = s.done[id].Intent; found.Intent != nil { // mutant: intent-forgotten
		found.Word = s.effects.words[found.Intent.Token]
		found.Since, found.Ended = s.effects.times.of(*found.Intent, found.Now)
	}
	return found
}

// Called notes that the call of an effect has ended without a result. It may still take effect.
func (s *Steps) Called(intent record.Intent) { s.effects.times.called(intent, time.Now()) }

// Declare declares an effect, and waits until its intent is stored. An error says that it may not be, so that nothing must
// be called. With newToken it gets another token than it had.
func (s *Steps) Declare(ctx context.Context, id string, class record.Class, name string, newToken bool) (record.Intent, error) {
	intent := s.intent(id, class, name, newToken)
	answer := make(chan error, 1)
	s.mu.Lock()
	s.done, s.fresh = record.Declare(s.done, id, intent), true
	s.mu.Unlock()
	err := s.mail.declare(waiting{id: id, intent: intent, answer: answer}) // mutant: effect-before-intent
	if err == nil {
		select {
		case err = <-answer:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		s.Withdraw(id)
		return intent, fmt.Errorf("store the intent (nothing was called): %w", err)
	}
	return intent, nil
}

// intent is the next one of an effect.
func (s *Steps) intent(id string, class record.Class, name string, newToken bool) record.Intent { //nolint:revive // As above.
	s.mu.Lock()
	defer s.mu.Unlock()
	const enough = 8 // To tell those apart who declare the same at the same time.
	next := record.Intent{Class: class, Name: name, Number: 1, By: uuid.NewString()[:enough], At: time.Now().UTC().Truncate(time.Second)}
	if before := s.done[id].Intent; before != nil {
		next.Number, next.Token = before.Number+1, before.Token
		if !before.Void {
			next.Name = before.Name
		}
	}
	if newToken {
		next.Name = name
	}
	if name, only := s.effects.name(id); newToken || next.Token == "" {
		next.Token = uuid.NewString()
		if only && !newToken && class != record.Stop { // What a person has said of one call is not said of another.
			next.Token = uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)).String()
		}
	}
	return next
}

// Withdraw notes that an effect which was declared is known not to have been made.
func (s *Steps) Withdraw(id string) { s.change(id, func(intent *record.Intent) { intent.Void = true }) }

// Ask notes that a person has to say what came of an effect. It returns the words that say so. Without an intent there is one
// from now on: it may have been made before the record was lost.
func (s *Steps) Ask(id string, class record.Class) string {
	s.mu.Lock()
	declared := s.done[id].Intent != nil
	s.mu.Unlock()
	if !declared {
		lost := s.intent(id, class, "", false)
		s.mu.Lock()
		s.done = record.Declare(s.done, id, lost)
		s.mu.Unlock()
	}
	asked := s.change(id, func(intent *record.Intent) { intent.Asks = true })
	begun := "started at " + asked.At.Format(time.RFC3339)
	if !declared {
		begun = "possibly started before the record was lost"
	}
	return fmt.Sprintf("the result for %s is unknown (%s); check the external system, then set the annotation %s to %q if the effect did not happen, "+
		"or to %q or its result as JSON if it did", s.effects.about, begun, s.effects.annotation(asked.Token), record.WordAgain, record.WordDone)
}

// change changes the intent of an effect without a result.
func (s *Steps) change(id string, how func(*record.Intent)) record.Intent {
	s.mu.Lock()
	defer s.mu.Unlock()
	step := s.done[id]
	if step.Intent == nil || step.Done() {
		return record.Intent{}
	}
	changed := *step.Intent
	how(&changed)
	s.done, s.fresh = record.Declare(s.done, id, changed), true
	return changed
}

// declare stores the intents that the handler waits for, with what else is done, and tells it what came of that.
func (p *pass) declare(ctx context.Context, w *work, call *Call) {
	if call.Steps.together() {
		<-time.After(gathering)
	}
	asked := call.mail.takeEffects()
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
		if errors.Is(err, errOvertaken) {
			call.mail.close(err)
		}
		effect.answer <- err
	}
}

// declared reports whether an intent is in the record that is stored.
func (p *pass) declared(id string, effect waiting) error {
	kept := p.plan.Record.Handlers[id].Steps[effect.id].Intent
	text, err := p.plan.Record.Encode()
	if err == nil && (kept == nil || !kept.Same(effect.intent) || kept.Void || text != p.seen.Record().Stored()) {
		err = errOvertaken
	}
	return err
}

// discardAttempt drops what this process has noted of an attempt, because another process has written the record since.
func (p *pass) discardAttempt(w *work, run handler.Run) {
	p.report.Log.Warn("another replica has reconciled the object, attempt not counted", "handler", run.ID, "attempt", run.Attempt)
	w.ended = errOvertaken
	w.journal.Drop(run)
	if len(w.journal.Attempts()) == 0 && p.memory.unsaved == w {
		p.memory.unsaved = nil
	}
}

// together reports whether items run at the same time.
func (s *Steps) together() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return path.Base(s.at) == AllItems
}
