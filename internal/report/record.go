package report

import (
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// What people see when a record was lost.
const (
	// LostCondition is the type of the condition of an object whose record was lost.
	LostCondition = "StateLost"
	lostReason    = "RecordMissing"
	lostSentence  = "the record of this object is missing, although every object of its age had one. Create handlers do not run, " +
		"because they may have run already. To run them once, set the annotation %s to a new value"
)

// What people see when a record may be older than what handlers did.
const (
	replacedReason   = "RecordReplaced"
	replacedSentence = "%s has written the record of this object, and the operator has not seen the record before it, so it can be older than what " +
		"the handlers did: handlers can repeat work or miss a change. Check the external systems"
)

// RecordLost reports that the object has no record although it had one.
func (o Object) RecordLost() {
	annotation := object.RecreateAnnotation(o.kind.Identity)
	o.kind.Metrics.Lost()
	o.Log.Warn("record lost while the operator was down, create handlers do not run",
		"remedy", "set the annotation to a new value to run them once", "annotation", annotation)
	o.warn(LostCondition, lostSentence, annotation)
}

// RecordReplaced reports that another client has written the record. There is no event about an object that is being deleted.
func (o Object) RecordReplaced(client string, in record.Carrier) {
	o.Log.Warn("another client has written the record, and the operator has not seen the one before: it can be older than what the handlers did",
		"client", client, "record", in.Path(o.kind.Identity).String())
	if object.Text(o.body, "metadata", "deletionTimestamp") == "" {
		o.warn(replacedReason, replacedSentence, client)
	}
}
