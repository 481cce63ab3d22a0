package record

import (
	"maps"
	"strings"
	"time"
)

// Class is how an effect outside the cluster recovers if the outcome of a call is unknown.
type Class string

// The classes. Keyed: the call takes a token, and a second call with the same token does nothing. Named: the call takes a name that
// can exist only once. Findable: what the call made can be looked up. Stop: a person decides.
const (
	Keyed    Class = "keyed"
	Named    Class = "named"
	Findable Class = "findable"
	Stop     Class = "stop"
)

// Intent declares that a handler is about to make a change outside the cluster. It is stored before the call, so that an intent
// without a result shows that the call may have been made.
type Intent struct {
	Class Class `json:"class"`
	// Token identifies the call. It is the same for each call of the same effect. It is not secret.
	Token string `json:"token"`
	// Name is the name of what a Named effect makes.
	Name string `json:"name,omitempty"`
	// Number counts the intents of an effect, from 1; a process that finds a higher one than its own has outdated knowledge. By is a
	// random id of the writer, since two processes may declare the same effect at the same time.
	Number int    `json:"number"`
	By     string `json:"by"`
	// At is when the intent was written.
	At time.Time `json:"at"`
	// Void means that certainly nothing was made.
	Void bool `json:"void,omitempty"`
	// Asks means that a person has to say what the outcome was. Heard is the digest of the answer at the handler's last call.
	Asks  bool   `json:"asks,omitempty"`
	Heard string `json:"heard,omitempty"`
}

// Same reports whether two intents are the same one, even if more is known about one of them.
func (i Intent) Same(other Intent) bool { return i.By == other.By && i.Number == other.Number }

// Done reports whether the step has ended. Only an effect without a result has not.
func (s Step) Done() bool { return s.Intent == nil || len(s.Result) > 0 }

// Unknown reports whether the step is an effect that may or may not have been made.
func (s Step) Unknown() bool { return !s.Done() && !s.Intent.Void }

// newest returns the more recent of two versions of a step. If both are equally recent, it returns the first, with what the second
// adds.
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

// Declare returns the steps with the intent of an effect that has no result yet.
func Declare(steps map[string]Step, id string, intent Intent) map[string]Step {
	declared := maps.Clone(steps)
	if declared == nil {
		declared = make(map[string]Step, 1)
	}
	declared[id] = Step{Intent: &intent}
	return declared
}

// Effects returns the steps that are effects.
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

// Unknown reports whether one of the steps is an effect that may or may not have been made.
func Unknown(steps map[string]Step) bool {
	for _, step := range steps {
		if step.Unknown() {
			return true
		}
	}
	return false
}

// NoteAnswers returns the steps with a note of the answers to those that ask, by token. The note is made by digest.
func NoteAnswers(steps map[string]Step, words map[string]string, digest func(string) string) map[string]Step {
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

// settling is how long an effect without a result is left alone before it is looked up or a person is asked. Another process may be in the
// middle of the call, and not every system finds at once what was made.
const settling = 30 * time.Second

// Move is what to do next about an effect.
type Move struct {
	// Wait: do nothing until this much time has passed.
	Wait time.Duration
	// Declare: store an intent first. NewToken: use a new token for it.
	Declare, NewToken bool
	// Look: look up what may have been made. If something is found, it is the result.
	Look bool
	// Call: make the call, unless something was found.
	Call bool
	// Take: use a person's answer as the result.
	Take bool
	// Ask: do not call; a person has to say what the outcome was.
	Ask bool
}

// The answers of a person. Any other text that starts like JSON is the result itself.
const (
	// WordAgain: the effect was not made; call it again.
	WordAgain = "again"
	// WordDone: the effect was made.
	WordDone = "done"
)

// Found is the state of an effect when a handler comes to it.
type Found struct {
	// Intent is the newest known intent, or nil.
	Intent *Intent
	// Stored means that the intent is stored, as far as this process knows.
	Stored bool
	// Repeated means that the handler may have run before. Doubted means that it may have run without leaving a record.
	Repeated, Doubted bool
	// Word is the answer of a person about the intent, or "".
	Word string
	// Since is when this process first saw the intent, and Ended when its own last call for it ended without a result. Both are zero if
	// unknown.
	Since, Ended time.Time
	Now          time.Time
}

// Next decides what to do about an effect that is called with this class.
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
	// A call that was made with another class lacks what this class needs to recover.
	switch {
	case f.Word == WordAgain:
		return Move{Declare: true, NewToken: true, Call: true}
	case f.Word == WordDone || strings.HasPrefix(f.Word, "{"):
		return Move{Take: true}
	case !f.Intent.Asks && f.young() > 0:
		return Move{Wait: f.young()}
	default:
		return Move{Ask: true}
	}
}

// young returns how long it takes until the intent is settled. The time in the intent comes from another process, whose clock can be ahead.
func (f Found) young() time.Duration {
	if !f.Ended.IsZero() {
		return f.Ended.Add(settling).Sub(f.Now)
	}
	if f.Since.IsZero() {
		f.Since = f.Now
	}
	return min(f.Intent.At.Sub(f.Now), f.Since.Sub(f.Now)) + settling
}
