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

// What people see when admission denies what the operator writes of an object.
const (
	deniedReason = "WriteDenied"
	deniedRemedy = "allow the operator's writes in the policy or webhook that the reason names"
	// deniedSentence is about the record, unmarkedSentence about the finalizer.
	deniedSentence = "the record of what handlers did cannot be written: %s. Einmal keeps it in memory and tries again. " +
		"If the operator restarts before, handlers can run again. Allow the operator's writes in the policy"
	unmarkedSentence = "the finalizer of the operator cannot be added or removed: %s. No handler runs until an addition is allowed. " +
		"Allow the operator's writes in the policy, or correct the object"
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

// RecordDenied reports that admission denied a write with the record. The reason is the redacted text of the API server, which names the policy or
// webhook.
func (o Object) RecordDenied(reason string) {
	o.Log.Warn("admission denied the record, kept in memory", "reason", reason, "remedy", deniedRemedy)
	o.warn(deniedReason, deniedSentence, reason)
}

// FinalizerDenied reports that admission denied a write of only the finalizer. The reason is as for RecordDenied.
func (o Object) FinalizerDenied(reason string) {
	o.Log.Warn("admission denied the finalizer", "reason", reason, "remedy", deniedRemedy)
	o.warn(deniedReason, unmarkedSentence, reason)
}
