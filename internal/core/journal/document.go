package journal

import (
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Status is the subresource that the status is written through.
const Status = "status"

// Document is one request that stores part of a journal.
type Document struct {
	// Subresource is where the document goes, "" for the object itself.
	Subresource string
	Changes     *patch.Document
	// Record means that the document stores the record.
	Record bool

	// edits are those of handlers. rest and status tell which parts of the object they cover: if a kind has no subresource for the status, both are in one
	// document.
	edits        []patch.Edit
	rest, status bool
}

// Target is the object that documents change, as it was read.
type Target struct {
	// Base is the object as the API server has it, and Seen the same object in the form that the Go type of the handlers writes. They differ in lists.
	Base, Seen object.Body
	// HasStatus means that the kind has a subresource for the status. Carrier is where the record is stored.
	HasStatus bool
	Carrier   record.Carrier
	// Identity is that of the operator, and Finalizer its finalizer.
	Identity, Finalizer string
	// Stored is the text of the record that the carrier has.
	Stored string
	// Removes means that the finalizer goes, and Released that the object goes with it, so that its record is not written any more.
	Removes, Released bool
	// Conditions are those of the framework that begin, hold on or end with the record.
	Conditions []Condition
	Now        time.Time
}

// Condition is a condition of the framework. Put returns a list of conditions with this one, and whether that is a change.
type Condition interface {
	Put(list []any, generation any, now time.Time) ([]any, bool)
}

// Resource returns the subresource through which a record is written, "" for the object itself.
func Resource(carrier record.Carrier, hasStatus bool) string { //nolint:revive // It is a fact about the kind, not a choice.
	if carrier == record.Status && hasStatus {
		return Status
	}
	return ""
}

// Fold enters the attempts into the planned record, which is the newest one of the object. It drops the changes of failed attempts for what another process has
// finished in the meantime: they would overwrite what that one has left in the status, and nothing would correct them. It keeps of the finalizer what the newest plan still wants: the object
// may have changed since. A record with new content gets the next number. One that is put back keeps its own: stored is the text that its carrier has, and
// known the newest one that this process knows.
func (j *Journal) Fold(kind handler.Kind, plan handler.Plan, stored, known string) error {
	j.updateFinalizer(plan)
	newest := plan.Record
	if !j.onlyFinalizer {
		j.dropSuperseded(kind, newest)
		for _, made := range j.attempts {
			newest = kind.Fold(newest, made.Run, made.Result, made.Seen, made.At)
		}
		newest = kind.Settle(newest, j.current)
	}
	j.record = kind.Reduce(newest, j.reduction)
	text, err := j.record.Encode()
	if err == nil && !j.keepRecord && text != stored && text != known {
		j.record.Writes++ // mutant: record-not-counted
		text, err = j.record.Encode()
	}
	j.text = text
	return err
}

// updateFinalizer keeps what the plan wants done with the finalizer. The API server accepts no new one on an object that is being deleted.
func (j *Journal) updateFinalizer(plan handler.Plan) {
	if j.finalizer == handler.Keep || j.finalizer == plan.Finalizer { // mutant: old-removal
		return
	}
	j.finalizer = handler.Keep // mutant: old-finalizer
	j.keepRecord = j.keepRecord || j.onlyFinalizer
}

// Writes reports whether the record is to be stored, which differs from the stored text.
func (j *Journal) Writes(stored string) bool { return !j.keepRecord && j.text != stored }

// Changes returns the edits that the documents make: those of handlers, of the finalizer and of the record.
func (j *Journal) Changes(target Target) []patch.Edit {
	edits := j.Edits()
	if j.finalizer == handler.Add {
		edits = append(edits, patch.Edit{Path: object.Path{"metadata", "finalizers"}})
	}
	if j.Writes(target.Stored) {
		edits = append(edits, patch.Edit{Path: target.Carrier.Path(target.Identity)})
	}
	return edits
}

// Documents returns at most two documents that store the journal as it was folded. The record goes last, so that it never says more than what is written; only
// the removal of a finalizer goes after it. If contested is not nil, another client has changed the same items of this list, and there are no documents.
func (j *Journal) Documents(target Target) (documents []Document, contested object.Path) {
	main := Document{Changes: patch.Seen(target.Base, target.Seen), edits: j.rest, rest: true}
	status := Document{Subresource: Status, Changes: patch.Seen(target.Base, target.Seen), edits: j.status, status: true}
	if !target.HasStatus {
		main.edits, main.status, status.edits = j.Edits(), true, nil
	}
	for _, composed := range []Document{main, status} {
		for _, edit := range composed.edits {
			composed.Changes.Edit(edit)
		}
		if field := composed.Changes.Contested(); field != nil {
			return nil, field
		}
	}
	switch {
	case target.Removes:
		main.Changes.RemoveFinalizer(target.Finalizer)
	case j.finalizer == handler.Add:
		main.Changes.AddFinalizer(target.Finalizer)
	}
	if j.Writes(target.Stored) && !target.Released {
		j.addRecord(target, &main, &status) // mutant: former-removed-first
	}
	documents = []Document{status, main}
	if Resource(target.Carrier, target.HasStatus) == Status && !target.Removes { // mutant: finalizer-before-record
		slices.Reverse(documents)
	}
	return slices.DeleteFunc(documents, func(one Document) bool { return one.Changes.Empty() }), nil
}

// addRecord adds the record to the document of its carrier, on condition that the carrier holds what was read, and the conditions to that of the status.
func (j *Journal) addRecord(target Target, main, status *Document) {
	if !target.HasStatus {
		status = main
	}
	carrier := main
	if Resource(target.Carrier, target.HasStatus) == Status {
		carrier = status
	}
	at := target.Carrier.Path(target.Identity)
	carrier.Changes.Test(at) // mutant: record-without-test
	carrier.Changes.Edit(patch.Edit{Path: at, Value: j.text, Remove: j.reduction == handler.NotStored})
	carrier.Record = j.reduction < handler.NotStored
	j.addConditions(target, status.Changes)
}

// addConditions adds the conditions of the framework. It expects their list to be as it was.
func (j *Journal) addConditions(target Target, changes *patch.Document) {
	j.conditions = false
	if j.withoutConditions || len(target.Conditions) == 0 {
		return
	}
	at := object.Path{"status", "conditions"} // The convention of Kubernetes.
	value, has := changes.Value(at)
	list, isList := value.([]any)
	if has && value != nil && !isList {
		return
	}
	generation, _ := object.Get(target.Base, "metadata", "generation")
	for _, condition := range target.Conditions {
		var changed bool
		list, changed = condition.Put(list, generation, target.Now)
		j.conditions = j.conditions || changed
	}
	if j.conditions {
		changes.Test(at)
		changes.Edit(patch.Edit{Path: at, Value: list})
	}
}

// Accepted notes that the API server has accepted a document.
func (j *Journal) Accepted(one Document) {
	j.written = patch.Apply(j.written, one.edits)
	if one.rest {
		j.rest, j.finalizer = nil, handler.Keep
	}
	if one.status {
		j.status = nil
	}
}

// Former returns the document that removes the record which an earlier release kept in another carrier. It is to be sent once the API server is known to hold
// the newer one: a crash or a refusal in between leaves both.
func (t Target) Former(carrier record.Carrier) (removal Document, edit patch.Edit) {
	edit = patch.Edit{Path: carrier.Path(t.Identity), Remove: true}
	removal = Document{Subresource: Resource(carrier, t.HasStatus), Changes: patch.New(t.Base)}
	removal.Changes.Test(t.Carrier.Path(t.Identity))
	removal.Changes.Test(edit.Path)
	removal.Changes.Edit(edit)
	return removal, edit
}
