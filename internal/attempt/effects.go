package attempt

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// ErrOvertaken tells that another process has written the record of the object since this one has read it: what is known of
// the handler is old, and nothing may be called because of it.
var ErrOvertaken = errors.New("another replica has reconciled the object in the meantime; nothing was called and the handler runs again")

// Effects is what is known of the effects of a handler before an attempt.
type Effects struct {
	// Object is its kind and name, for people. Annotation returns the name of the one in which a person says what came of the effect with a token.
	Object     string
	Annotation func(token string) string
	// Name names an effect, where it is the only one that the object ever has by that name.
	Name func(id string) (string, bool)
	// Words are what people have said of effects, by their token.
	Words map[string]string
	// Stored, Repeated and Doubted are as in record.Found.
	Stored, Repeated, Doubted bool
	Times                     *IntentTimes
}

// IntentTimes is when this process saw the intents of an object and ended its calls. An intent that is declared again keeps its token, so
// the key is who declared it: an end of a call is not known of the next one. The zero value is ready to use.
type IntentTimes struct {
	// Both are from who declared an intent to a time. A handler can still call its steps after its reconciliation has ended.
	since, ended sync.Map
}

// of returns when an intent was first seen, which is now if it is new, and when the last call for it ended, or zero.
func (t *IntentTimes) of(intent record.Intent, now time.Time) (since, ended time.Time) {
	first, _ := t.since.LoadOrStore(intent.By, now)
	since, _ = first.(time.Time)
	if last, has := t.ended.Load(intent.By); has {
		ended, _ = last.(time.Time)
	}
	return since, ended
}

// called notes that a call has ended without a result.
func (t *IntentTimes) called(intent record.Intent, now time.Time) {
	t.since.LoadOrStore(intent.By, now)
	t.ended.Store(intent.By, now)
}

// Waiting is an effect that waits for its intent to be stored.
type Waiting struct {
	ID     string
	Intent record.Intent
	answer chan<- error
}

// Answer tells the handler that the intent is stored, or why nothing must be called.
func (w Waiting) Answer(err error) { w.answer <- err }

// Effect is how an effect stands.
func (s *Steps) Effect(id string) record.Found {
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	found := record.Found{Now: time.Now(), Stored: s.options.Effects.Stored, Repeated: s.options.Effects.Repeated, Doubted: s.options.Effects.Doubted}
	if found.Intent = s.done[id].Intent; found.Intent != nil { // mutant: intent-forgotten
		found.Word = s.options.Effects.Words[found.Intent.Token]
		found.Since, found.Ended = s.options.Effects.Times.of(*found.Intent, found.Now)
	}
	return found
}

// Called notes that the call of an effect has ended without a result. It may still take effect.
func (s *Steps) Called(intent record.Intent) { s.options.Effects.Times.called(intent, time.Now()) }

// Declare declares an effect, and waits until its intent is stored. An error says that it may not be, so that nothing must
// be called. With newToken it gets another token than it had.
func (s *Steps) Declare(ctx context.Context, id string, class record.Class, name string, newToken bool) (record.Intent, error) {
	intent := s.intent(id, class, name, newToken)
	answer := make(chan error, 1)
	s.mail.mu.Lock()
	s.done, s.fresh = record.Declare(s.done, id, intent), true
	s.mail.mu.Unlock()
	err := s.mail.declare(Waiting{ID: id, Intent: intent, answer: answer}) // mutant: effect-before-intent
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
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
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
	if name, only := s.options.Effects.Name(id); newToken || next.Token == "" {
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
	s.mail.mu.Lock()
	declared := s.done[id].Intent != nil
	s.mail.mu.Unlock()
	if !declared {
		lost := s.intent(id, class, "", false)
		s.mail.mu.Lock()
		s.done = record.Declare(s.done, id, lost)
		s.mail.mu.Unlock()
	}
	asked := s.change(id, func(intent *record.Intent) { intent.Asks = true })
	begun := "started at " + asked.At.Format(time.RFC3339)
	if !declared {
		begun = "possibly started before the record was lost"
	}
	return fmt.Sprintf("the result for %s is unknown (%s); check the external system, then set the annotation %s to %q if the effect did not happen, "+
		"or to %q or its result as JSON if it did", s.options.Effects.Object, begun, s.options.Effects.Annotation(asked.Token), record.WordAgain, record.WordDone)
}

// change changes the intent of an effect without a result.
func (s *Steps) change(id string, how func(*record.Intent)) record.Intent {
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	step := s.done[id]
	if step.Intent == nil || step.Done() {
		return record.Intent{}
	}
	changed := *step.Intent
	how(&changed)
	s.done, s.fresh = record.Declare(s.done, id, changed), true
	return changed
}

// Concurrent reports whether items run at the same time.
func (s *Steps) Concurrent() bool {
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	return path.Base(s.at) == AllItems
}
