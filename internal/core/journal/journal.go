// Package journal keeps what was done to one object and is not stored yet: attempts of handlers, their changes of the object, its finalizer and its record. It
// makes the documents that store it, and takes note of what the API server answers to them. It is pure.
package journal

import (
	"slices"
	"strings"
	"time"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Attempt is one attempt of a handler, or what is done of one that goes on: then its outcome is Pending.
type Attempt struct {
	Run    handler.Run
	Result handler.Result
	// Seen is the essence that the handler got, with the handler's own changes.
	Seen object.Body
	At   time.Time
	// Changing are the steps of the attempt whose changes of the object are not stored.
	Changing []string

	// edited means that changes of the attempt are not stored.
	edited bool
}

// Journal is what was done to one object and is not stored yet. Make it with New or OnlyFinalizer.
type Journal struct {
	uid     string
	essence func(object.Body) object.Body

	finalizer handler.Finalizer
	// onlyFinalizer: nothing but the finalizer was asked for. keepRecord leaves the stored record as it is.
	onlyFinalizer, keepRecord bool
	attempts                  []Attempt
	// rest and status are the handlers' edits that are not stored, and touched the fields that handlers have set.
	rest, status []patch.Edit
	touched      []touched
	// written is the object as the handlers were given it, with those of their edits that are stored. current is the newest essence that was handed out.
	written, current object.Body

	// record is the newest one of the object with the attempts folded in, and text what of it is stored. reduction is how much of it is left out.
	record    record.Record
	text      string
	reduction handler.Reduction
	// conditions: the last documents had conditions of the framework. withoutConditions leaves them out.
	conditions, withoutConditions bool
	rejection                     error
}

// touched is a field that a handler has set.
type touched struct {
	field patch.Touch
	by    string
}

// Object is the object that a journal is about.
type Object struct {
	UID string
	// Given is the object as the first handler gets it.
	Given object.Body
	// Essence returns the part of an object whose change means something to the handlers. It must be pure.
	Essence func(object.Body) object.Body
}

// New returns a journal in which nothing was done yet but what is planned for the finalizer. Unless the stored record is kept, the attempts are folded into that
// of the plan.
func New(of Object, finalizer handler.Finalizer, planned record.Record, keepRecord bool) *Journal {
	return &Journal{
		uid: of.UID, essence: of.Essence, finalizer: finalizer, record: planned, keepRecord: keepRecord,
		written: of.Given, current: of.Essence(of.Given),
	}
}

// OnlyFinalizer returns a journal that adds the finalizer. It puts the planned record back with the same document, unless the stored one is kept.
func OnlyFinalizer(of Object, planned record.Record, keepRecord bool) *Journal {
	j := New(of, handler.Add, planned, keepRecord)
	j.onlyFinalizer = true
	return j
}

// Overwritten is a status field that one handler has set to a value and another one to a different value.
type Overwritten struct{ Field, Earlier string }

// Add adds an attempt and its changes that were not added before. It takes the place of what was added of an earlier part of the same attempt. Add returns the
// status fields in which the changes contradict those of other handlers.
func (j *Journal) Add(made Attempt, edits []patch.Edit) []Overwritten {
	for i := range edits {
		edits[i].By = made.Run.ID
	}
	overwritten := j.AddEdits(made.Run.ID, edits)
	made.edited = len(edits) > 0
	j.attempts = slices.DeleteFunc(j.attempts, func(earlier Attempt) bool {
		part := earlier.Run.ID == made.Run.ID && earlier.Result.Outcome == record.Pending
		made.edited = made.edited || part && earlier.edited
		return part
	})
	j.attempts = append(j.attempts, made)
	if made.Result.Outcome != record.Pending {
		j.current = made.Seen
	}
	return overwritten
}

// AddEdits adds changes of a handler of which no attempts are recorded, a daemon.
func (j *Journal) AddEdits(by string, edits []patch.Edit) []Overwritten {
	rest, status := patch.Split(edits)
	j.rest, j.status = append(j.rest, rest...), append(j.status, status...)
	found := patch.Touches(edits)
	var overwritten []Overwritten
	for _, touch := range found {
		for _, earlier := range j.touched {
			if earlier.by != by && touch.Path.Under("status") && touch.Contradicts(earlier.field) {
				overwritten = append(overwritten, Overwritten{Field: touch.Path.String(), Earlier: earlier.by})
			}
		}
	}
	for _, touch := range found {
		j.touched = append(j.touched, touched{field: touch, by: by})
	}
	return overwritten
}

// Setter returns the handler that has set a field last, or "". The API server names items of lists by their index, as in
// status.endpoints[0].host, and Einmal by their keys, so it is the last handler that has set any item of the list.
func (j *Journal) Setter(field string) string {
	field, _, _ = strings.Cut(field, "[")
	for _, touch := range slices.Backward(j.touched) {
		if set := touch.field.Path.String(); strings.HasPrefix(field, set) || strings.HasPrefix(set, field) {
			return touch.by
		}
	}
	return ""
}

// Drop removes what was added of an attempt. Its changes stay.
func (j *Journal) Drop(run handler.Run) {
	j.attempts = slices.DeleteFunc(j.attempts, func(made Attempt) bool { return made.Run.ID == run.ID })
}

// Stored notes that the attempts are stored, so that more can be added, and returns the record in which they are.
func (j *Journal) Stored() record.Record {
	j.attempts = nil
	return j.record
}

// Attempts returns the attempts that are not stored.
func (j *Journal) Attempts() []Attempt { return j.attempts }

// Edits returns the changes of handlers that are not stored.
func (j *Journal) Edits() []patch.Edit { return slices.Concat(j.rest, j.status) }

// Finalizer returns what is to be done with the finalizer.
func (j *Journal) Finalizer() handler.Finalizer { return j.finalizer }

// Record returns the newest record of the object, into which the attempts were folded when documents were made last.
func (j *Journal) Record() record.Record { return j.record }

// Text returns the record as the last documents have it.
func (j *Journal) Text() string { return j.text }

// HasRecord reports whether it is the record of attempts that is to be stored.
func (j *Journal) HasRecord() bool { return !j.onlyFinalizer && !j.keepRecord }

// Current returns the newest essence that handlers got, with what they have changed.
func (j *Journal) Current() object.Body { return j.current }

// Rejection returns why changes of handlers were given up, or nil.
func (j *Journal) Rejection() error { return j.rejection }
