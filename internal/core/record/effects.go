package record

import (
	"maps"
	"strings"
	"time"
)

// Class is how an effect outside of the cluster recovers when nobody knows what came of a call.
type Class string

// The classes. Keyed: the call takes a token, and the same token does nothing twice. Named: it takes a name, and the same
// name is there once. Findable: what it made can be looked up. Stop: a person decides.
const (
	Keyed    Class = "keyed"
	Named    Class = "named"
	Findable Class = "findable"
	Stop     Class = "stop"
)

// Intent says that a handler is about to do something outside of the cluster. It is stored before that is done, so that who
// finds an intent without a result knows that it may have been.
type Intent struct {
	Class Class `json:"class"`
	// Token is what the call is known by, the same for each call of the same effect. It is not secret.
	Token string `json:"token"`
	// Name is what a Named one makes.
	Name string `json:"name,omitempty"`
	// Number counts the intents of an effect, from 1: who finds a higher one knows less than others. By is who declared it, by
	// chance, since two may declare the same at the same time.
	Number int    `json:"number"`
	By     string `json:"by"`
	// At is when it was written.
	At time.Time `json:"at"`
	// Void tells that it is known that nothing was made.
	Void bool `json:"void,omitempty"`
	// Asks tells that a person has to say what came of it. Heard is the digest of what was said when the handler was called last.
	Asks  bool   `json:"asks,omitempty"`
	Heard string `json:"heard,omitempty"`
}

// Same tells whether two intents are one, whatever is known of it meanwhile.
func (i Intent) Same(other Intent) bool { return i.By == other.By && i.Number == other.Number }

// Done tells whether the step has ended. All have but effects of which there is no result.
func (s Step) Done() bool { return s.Intent == nil || len(s.Result) > 0 }

// Unknown tells whether the step is an effect that may have been made, or not.
func (s Step) Unknown() bool { return !s.Done() && !s.Intent.Void }

// newest is the one of two accounts of a step that knows more. Where both know as much it is the first, but for what the
// second adds.
func newest(known, other Step) Step {
	switch {
	case known.Intent == nil || other.Intent == nil || known.Done() != other.Done():
		if other.Done() {
			return other
		}
		return known
	case other.Intent.Number > known.Intent.Number:
		return other
	case known.Done() || !known.Intent.Same(*other.Intent):
		return known
	}
	joined := *known.Intent
	joined.Void, joined.Asks = joined.Void || other.Intent.Void, joined.Asks || other.Intent.Asks
	return Step{Intent: &joined}
}

// Declare returns the steps with an effect that is intended, and of which there is no result.
func Declare(steps map[string]Step, id string, intent Intent) map[string]Step {
	declared := maps.Clone(steps)
	if declared == nil {
		declared = make(map[string]Step, 1)
	}
	declared[id] = Step{Intent: &intent}
	return declared
}

// Effects returns those of the steps that are effects.
func Effects(steps map[string]Step) map[string]Step {
	var found map[string]Step
	for id, step := range steps {
		if step.Intent != nil {
			if found == nil {
				found = map[string]Step{}
			}
			found[id] = step
		}
	}
	return found
}

// Unknown tells whether one of the steps is an effect that may have been made, or not.
func Unknown(steps map[string]Step) bool {
	for _, step := range steps {
		if step.Unknown() {
			return true
		}
	}
	return false
}

// Hear returns the steps with a note of what was said of those that ask, by token. The digest makes the note.
func Hear(steps map[string]Step, words map[string]string, digest func(string) string) map[string]Step {
	for id, step := range steps {
		if !step.Unknown() || words[step.Intent.Token] == "" {
			continue
		}
		heard := *step.Intent
		heard.Heard = digest(words[heard.Token])
		steps = Declare(steps, id, heard)
	}
	return steps
}

// settling is how long after its intent an effect is left alone by who did not declare it, before it is looked up or given to a
// person: another process may be at the call, and not every system finds at once what was made.
const settling = 30 * time.Second

// Move is what to do about an effect.
type Move struct {
	// Wait: nothing is done before so much time has passed.
	Wait time.Duration
	// Declare: an intent has to be stored first. Anew: it gets another token.
	Declare, Anew bool
	// Look: what may have been made is looked up, and what is found is the result.
	Look bool
	// Call: the call is made, unless something was found.
	Call bool
	// Take: what a person has said is the result.
	Take bool
	// Ask: nothing is called, and a person has to say what came of it.
	Ask bool
}

// The words of a person. Anything else that begins like JSON is the result itself.
const (
	// WordAgain: it was not made, so it is to be called again.
	WordAgain = "again"
	// WordDone: it was made.
	WordDone = "done"
)

// Found is how an effect stands when a handler comes to it.
type Found struct {
	// Intent is the newest one that is known; nil for none.
	Intent *Intent
	// Stored tells that it is stored, as far as is known.
	Stored bool
	// Repeated: an earlier run of the handler cannot be ruled out. Doubted: neither can it be of one that has left no record.
	Repeated, Doubted bool
	// Word is what a person has said of the intent; "" for nothing.
	Word string
	Now  time.Time
}

// Next decides what to do about an effect that is called in this class.
func (f Found) Next(class Class) Move {
	switch {
	case f.Intent == nil && class == Stop && f.Doubted:
		return Move{Ask: true}
	case f.Intent == nil, f.Intent.Void:
		return Move{Declare: true, Look: class == Findable && f.Repeated, Call: true}
	case class == Findable && f.young() > 0:
		return Move{Wait: f.young()}
	case class == Findable:
		return Move{Declare: !f.Stored, Look: true, Call: true}
	case class == f.Intent.Class && class != Stop:
		return Move{Declare: !f.Stored, Call: true}
	}
	// What was called in another class was called without what this one recovers by.
	switch {
	case f.Word == WordAgain:
		return Move{Declare: true, Anew: true, Call: true}
	case f.Word == WordDone || strings.HasPrefix(f.Word, "{"):
		return Move{Take: true}
	case !f.Intent.Asks && f.young() > 0:
		return Move{Wait: f.young()}
	default:
		return Move{Ask: true}
	}
}

// young is how long it takes until the intent is settled.
func (f Found) young() time.Duration { return min(f.Intent.At.Add(settling).Sub(f.Now), settling) }
