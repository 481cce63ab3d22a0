package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// AllItems stands for the items of an Each where a step is named that runs.
const AllItems = "*"

// Steps are the parts of a handler in one attempt: which ones are done, and what the last of them has left of the object.
// They are used by the handler and by the pass that saves them meanwhile. Without a record there are none: nil.
type Steps struct {
	// Concurrency is how many items run at the same time; 0 for the default.
	Concurrency int
	// refused says what a handler has changed that is not its own.
	refused func(before, after object.Body) error
	// hides reports whether a text has something in it that is recognised as secret.
	hides func(string) bool
	// mail tells the pass what has happened.
	mail *mailbox
	// effects is what is known of effects in this attempt.
	effects effects

	mu   sync.Mutex
	done map[string]record.Step
	// called are all steps of this attempt; at is the one that runs, "" outside of all. reserved is the room for those that run,
	// without their results, which are mostly much smaller than they may be.
	called   map[string]bool
	at       string
	reserved int
	// fresh tells that there are steps which the pass has not taken.
	fresh bool
	// left is what the last step has left of the object; nil if none has touched it.
	left object.Body
	// changing are the steps that have changed the object, as long as that is not written.
	changing []string

	// taken is what was left when the pass took it to be written, sent what of that was written in the end. They are the
	// pass's own.
	taken, sent object.Body
}

// steps are those of a run.
func (p *pass) steps(run handler.Run, mail *mailbox) *Steps {
	if !run.Recorded() {
		return nil
	}
	body := p.seen.Body() // The pass may read a newer one while the handler runs.
	return &Steps{
		hides:       func(text string) bool { return p.reports.Redact(text, body) != text },
		Concurrency: p.kind.handler(run.ID).Concurrency,
		refused:     func(before, after object.Body) error { return p.refused(run.ID, before, after) },
		mail:        mail, done: run.Steps, called: map[string]bool{}, effects: p.effects(run),
	}
}

// unsent are those changes of a handler that the pass has not taken yet, if this is what is left of the object.
func (p *pass) unsent(call *Call, left object.Body) []patch.Edit {
	if call.Steps == nil || call.Steps.taken == nil {
		return p.edits(call.Given, left)
	}
	return p.edits(call.Steps.taken, left)
}

// note notes what came of an attempt, or of a part of it, in the place of what was noted of an earlier part of it.
func (p *pass) note(w *work, made journal.Attempt, edits []patch.Edit) {
	p.reportTouches(made.Run, edits, w.journal.Add(made, edits))
}

// saveMeanwhile saves what is done while a handler goes on: by handlers before it, and by its own steps.
func (p *pass) saveMeanwhile(ctx context.Context, w *work, call *Call) error {
	if taken, is := call.Steps.take(); is {
		edits := p.unsent(call, taken.left)
		call.Steps.taken = taken.left
		p.note(w, journal.Attempt{
			Run: call.Run, Result: handler.Result{Outcome: record.Pending, Steps: taken.done}, Changing: taken.changing,
			Seen: p.essence(patch.Apply(call.Given, p.edits(call.Given, taken.left))), At: time.Now(),
		}, edits)
		defer func() {
			if len(w.journal.Attempts()) == 0 {
				call.Steps.written(taken.changing)
			}
		}()
	}
	if len(w.journal.Attempts()) == 0 {
		return nil
	}
	err := p.flush(ctx, w)
	if err != nil && w.ended == nil {
		p.report.Log.Warn("cannot save progress, kept in memory", "error", p.reports.RedactError(err, p.seen.Body()))
	}
	return err
}

// Begin begins a step. What it gives back says that the step was done by an earlier attempt. Room is how large its result
// can become.
func (s *Steps) Begin(id string, room int) (done record.Step, is bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved -= record.StepsSize(map[string]record.Step{id: {}})
}

// Enter notes which step the handler is in; leave it with what it returns. Steps that change the object do so one after
// the other: else one would be saved with half of what another does.
func (s *Steps) Enter(outer, id string) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at != outer {
		return nil, fmt.Errorf("step %q: started while step %q is running; run steps one after another, or use Each to run them concurrently", id, s.at)
	}
	s.at = id
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.at = outer
	}, nil
}

// End notes that a step is done. Left is what it has left of the object, given as it was at the beginning of the attempt;
// nil for a step that does not touch it.
func (s *Steps) End(id string, done record.Step, given, left object.Body) error {
	if err := s.refused(given, left); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
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

// Hides reports whether a text has something in it that is recognised as secret.
func (s *Steps) Hides(text string) bool { return s.hides(text) }

// finished are all steps that are done.
func (s *Steps) finished() map[string]record.Step {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// reached is what the last step has left of the object; nil for none.
func (s *Steps) reached() object.Body {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// takenSteps is what a pass saves of a handler that goes on.
type takenSteps struct {
	done     map[string]record.Step
	left     object.Body
	changing []string
}

// take hands over what is to be saved while the handler goes on. It is false if there is nothing new.
func (s *Steps) take() (taken takenSteps, is bool) {
	if s == nil {
		return taken, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is, s.fresh = s.fresh, false
	return takenSteps{done: s.done, left: s.left, changing: slices.Clone(s.changing)}, is
}

// written notes that what the pass has taken is written, with the changes of these steps.
func (s *Steps) written(taken []string) {
	s.sent = s.taken
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changing = slices.DeleteFunc(s.changing, func(id string) bool { return slices.Contains(taken, id) })
}

// unwritten are the steps whose changes of the object are not written.
func (s *Steps) unwritten() []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.changing)
}

// takeBack forgets the steps whose changes of the object cannot be written: they have to be made again.
func (s *Steps) takeBack() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = record.Undone(s.done, s.changing)
	s.changing, s.taken = nil, s.sent
}
