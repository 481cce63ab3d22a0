package journal

import (
	"fmt"
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// contestedDelay is when a handler runs again after another client has changed the same items of a list.
const contestedDelay = time.Second

// Refusal is why the API server accepts a document no more than before, although no other client has changed the object.
type Refusal struct {
	// TooLarge means that the object would be too large, and Denied that admission has denied the write.
	TooLarge, Denied bool
	// Reason is what the API server says, without secrets.
	Reason string
	// Optional means that the record need not be stored at all: the object is being deleted, and no effect waits for its intent.
	Optional bool
	// Stored is the text of the record that its carrier has.
	Stored string
	Now    time.Time
}

// Concession is what a journal leaves out after a refusal.
type Concession struct {
	// Rejected are the attempts whose changes are given up, with their new results.
	Rejected []Attempt
	// Before and After are the lengths of the record in bytes if less of it is stored than before, and 0 otherwise. Unstored means that it is not stored at all.
	Before, After int
	Unstored      bool
}

// Refused makes the journal smaller: the record, if the object would be too large with it; else conditions of the framework are left out, then the changes of
// handlers are given up, and the record comes last. It returns false if there was nothing to leave out.
func (j *Journal) Refused(kind handler.Kind, why Refusal) (Concession, bool) {
	if why.TooLarge {
		if less, is := j.reduce(kind, why); is {
			return less, true
		}
	}
	if j.conditions {
		j.withoutConditions = true
		return Concession{}, true
	}
	if len(j.rest) > 0 || len(j.status) > 0 {
		j.reduction, j.withoutConditions = handler.Complete, false // They may not be the cause.
		return Concession{Rejected: j.reject(why)}, true
	}
	if why.Denied {
		return Concession{}, false
	}
	return j.reduce(kind, why)
}

// Restore leaves nothing of the record out any more: another time there may be room for all of it.
func (j *Journal) Restore() { j.reduction = handler.Complete }

// reduce leaves out more of the record, until it is smaller than the one that was sent.
func (j *Journal) reduce(kind handler.Kind, why Refusal) (Concession, bool) {
	if !j.Writes(why.Stored) {
		return Concession{}, false // No record was sent.
	}
	most := handler.WithoutMessages
	if why.Optional {
		most = handler.NotStored // mutant: record-blocks-deletion
	}
	for j.reduction < most {
		j.reduction++ // mutant: record-not-reduced
		text, err := kind.Reduce(j.record, j.reduction).Encode()
		if err == nil && (len(text) < len(j.text) || j.reduction == handler.NotStored) {
			return Concession{Before: len(j.text), After: len(text), Unstored: j.reduction == handler.NotStored}, true
		}
	}
	return Concession{}, false
}

// Unstored reports whether the record is not stored, because the object has no room for it.
func (j *Journal) Unstored() bool { return j.reduction == handler.NotStored }

// WithoutConditions reports whether the API server accepts the object only without the conditions of the framework.
func (j *Journal) WithoutConditions() bool { return j.withoutConditions && j.rejection == nil }

// reject gives up the changes of all handlers, whose attempts have failed.
func (j *Journal) reject(why Refusal) []Attempt {
	j.rest, j.status = nil, nil
	j.rejection = fmt.Errorf("the API server rejected the changes of the handler: %s", why.Reason)
	bare := handler.Result{Outcome: record.Retry, Message: j.rejection.Error(), Refused: !why.Denied}
	return j.takeBack(func(made Attempt) bool { return made.edited }, bare, why.Now)
}

// Contested gives up all changes of the handlers that have changed a list which another client has changed too. They run again on the object as it is then. It
// returns their attempts.
func (j *Journal) Contested(field object.Path, now time.Time) []Attempt {
	var by []string
	for _, edit := range j.Edits() {
		if slices.Equal(edit.Path, field) {
			by = append(by, edit.By)
		}
	}
	j.dropEdits(by)
	j.rejection = fmt.Errorf("another client changed the same items of the list %s while the handler ran", field)
	bare := handler.Result{Outcome: record.Retry, Asked: true, Delay: contestedDelay, Message: j.rejection.Error()}
	return j.takeBack(func(made Attempt) bool { return slices.Contains(by, made.Run.ID) }, bare, now)
}

// takeBack gives the attempts whose changes are given up another result. One that goes on only loses the steps that made them: the handler learns of it at its
// end. What is given up was never there, or it would seem to be taken back: a change to be seen.
func (j *Journal) takeBack(gives func(Attempt) bool, bare handler.Result, now time.Time) []Attempt {
	j.current = j.essence(patch.Apply(j.written, j.Edits()))
	var taken []Attempt
	for i := range j.attempts {
		made := &j.attempts[i]
		made.Seen = j.current
		if !gives(*made) {
			continue
		}
		done := record.Undone(made.Result.Steps, made.Changing)
		made.Changing = nil
		if made.Result.Outcome == record.Pending {
			made.Result.Steps, made.edited = done, false
		} else {
			result := bare
			result.Broken, result.Steps = made.Result.Broken, done
			made.Result = made.Run.Judge(j.uid, result, now)
		}
		taken = append(taken, *made)
	}
	return taken
}

// dropSuperseded gives up the changes of attempts that have ended without success, while another process has finished what they were for. Steps that made these
// changes count as not done.
func (j *Journal) dropSuperseded(kind handler.Kind, newest record.Record) {
	var by []string
	for i, made := range j.attempts {
		if made.edited && kind.Superseded(newest, made.Run, made.Result, made.Seen) {
			by = append(by, made.Run.ID)
			j.attempts[i].Result.Steps = record.Undone(made.Result.Steps, made.Changing)
			j.attempts[i].Changing, j.attempts[i].edited = nil, false
		}
	}
	if len(by) == 0 {
		return
	}
	j.dropEdits(by)
	j.current = j.essence(patch.Apply(j.written, j.Edits()))
	for i := range j.attempts {
		j.attempts[i].Seen = j.current
	}
}

// dropEdits removes the changes of some handlers that are not stored.
func (j *Journal) dropEdits(by []string) {
	leaves := func(edit patch.Edit) bool { return slices.Contains(by, edit.By) }
	j.rest, j.status = slices.DeleteFunc(slices.Clone(j.rest), leaves), slices.DeleteFunc(slices.Clone(j.status), leaves)
}
