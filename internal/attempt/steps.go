package attempt

import (
	"fmt"
	"slices"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// AllItems stands for the items of an Each where a step is named that runs.
const AllItems = "*"

// Steps are the parts of a handler in one attempt: which ones are done, and what the last of them has left of the object.
// They are used by the handler, and by the reconciliation that saves them meanwhile. Without a record there are none: nil.
type Steps struct {
	options Options
	// mail gets what has happened. Its lock guards the fields below.
	mail *Mailbox

	done map[string]record.Step
	// called are all steps of this attempt; at is the one that runs, "" outside of all. reserved is the room for those that run,
	// without their results, which are mostly much smaller than they may be.
	called   map[string]bool
	at       string
	reserved int
	// fresh tells that there are steps which were not taken.
	fresh bool
	// left is what the last step has left of the object; nil if none has touched it.
	left object.Body
	// changing are the steps that have changed the object, as long as that is not written.
	changing []string
	// taken is what was left when it was taken to be written, sent what of that was written in the end.
	taken, sent object.Body
}

// Options are what steps need to know of their handler and its object.
type Options struct {
	// Concurrency is how many items run at the same time; 0 for the default.
	Concurrency int
	// Refused says what a handler has changed that is not its own.
	Refused func(before, after object.Body) error
	// Hides reports whether a text has something in it that is recognised as secret.
	Hides func(string) bool
	// Done are the steps that earlier attempts have done.
	Done    map[string]record.Step
	Effects Effects
}

// NewSteps returns the steps of an attempt, which post to the mailbox of the attempt.
func NewSteps(options Options, mail *Mailbox) *Steps {
	return &Steps{options: options, mail: mail, done: options.Done, called: map[string]bool{}}
}

// Begin begins a step. What it gives back says that the step was done by an earlier attempt. Room is how large its result
// can become.
func (s *Steps) Begin(id string, room int) (done record.Step, is bool, err error) {
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	if s.called[id] {
		return done, false, fmt.Errorf("step %q: called twice in one attempt; give each step its own id", id)
	}
	s.called[id] = true
	if done, is = s.done[id]; is && done.Done() {
		return done, true, nil
	}
	own := record.StepsSize(map[string]record.Step{id: {}})
	if record.StepsSize(s.done)+s.reserved+own+room > record.StepsLimit {
		return done, false, fmt.Errorf("step %q: does not fit into the record, which already holds %d steps and has a limit of %d bytes for them; "+
			"use fewer and larger steps, or an object for each", id, len(s.done), record.StepsLimit)
	}
	s.reserved += own
	return done, false, nil
}

// Release gives back the room of a step that Begin has begun and that runs no longer.
func (s *Steps) Release(id string) {
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	s.reserved -= record.StepsSize(map[string]record.Step{id: {}})
}

// Enter notes which step the handler is in; leave it with what it returns. Steps that change the object do so one after
// the other: else one would be saved with half of what another does.
func (s *Steps) Enter(outer, id string) (leave func(), err error) {
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	if s.at != outer {
		return nil, fmt.Errorf("step %q: started while step %q is running; run steps one after another, or use Each to run them concurrently", id, s.at)
	}
	s.at = id
	return func() {
		s.mail.mu.Lock()
		defer s.mail.mu.Unlock()
		s.at = outer
	}, nil
}

// End notes that a step is done. Left is what it has left of the object, given as it was at the beginning of the attempt;
// nil for a step that does not touch it.
func (s *Steps) End(id string, done record.Step, given, left object.Body) error {
	if err := s.options.Refused(given, left); err != nil {
		return err
	}
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	before := s.left
	if before == nil {
		before = given
	}
	if left != nil {
		if s.left = left; !object.Equal(before, left) {
			s.changing = append(s.changing, id)
		}
	}
	if len(done.Result) > 0 { // It is the result of an effect, if there was one declared.
		done.Intent = s.done[id].Intent
	}
	s.done, s.fresh = record.Finish(s.done, id, done), true // mutant: step-result-forgotten
	s.mail.step()
	return nil
}

// Concurrency returns how many items run at the same time; 0 for the default.
func (s *Steps) Concurrency() int { return s.options.Concurrency }

// Hides reports whether a text has something in it that is recognised as secret.
func (s *Steps) Hides(text string) bool { return s.options.Hides(text) }

// Taken is what is to be saved of a handler that goes on.
type Taken struct {
	Done map[string]record.Step
	// Base is what was left of the object when steps were taken before, or nil. Left is what is left of it now, or nil.
	Base, Left object.Body
	// Changing are the steps that have changed the object, as long as that is not written.
	Changing []string
}

// Take returns what is to be saved while the handler goes on. It returns false if there is nothing new.
func (s *Steps) Take() (taken Taken, found bool) {
	if s == nil {
		return taken, false
	}
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	if !s.fresh {
		return taken, false
	}
	taken = Taken{Done: s.done, Base: s.taken, Left: s.left, Changing: slices.Clone(s.changing)}
	s.fresh, s.taken = false, s.left
	return taken, true
}

// Rest is what is to be saved of a handler that has ended: Done has all of its steps, and Left what the last of them has left of the object.
func (s *Steps) Rest() Taken {
	if s == nil {
		return Taken{}
	}
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	return Taken{Done: s.done, Base: s.taken, Left: s.left, Changing: slices.Clone(s.changing)}
}

// Written notes that what was taken last is written, with the changes of these steps.
func (s *Steps) Written(changing []string) {
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	s.sent = s.taken
	s.changing = slices.DeleteFunc(s.changing, func(id string) bool { return slices.Contains(changing, id) })
}

// TakeBack forgets the steps whose changes of the object cannot be written: they have to be made again.
func (s *Steps) TakeBack() {
	if s == nil {
		return
	}
	s.mail.mu.Lock()
	defer s.mail.mu.Unlock()
	s.done = record.Undone(s.done, s.changing)
	s.changing, s.taken = nil, s.sent
}
