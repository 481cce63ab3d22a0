package handler

import (
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// planDeletion plans the delete handlers that have not finished, and the resume handlers that also run during a deletion.
func (d *decision) planDeletion() {
	for _, declared := range d.kind.Handlers {
		resumes := declared.Verb == cause.Resume && declared.AlsoDeleting && d.resumes(declared)
		if declared.Verb == cause.Delete || resumes {
			d.consider(declared, d.plan.Record.Handlers[declared.ID])
		}
	}
}

// givenUpByHand gives up a delete handler whose last attempt failed, if a user requests that. It reports whether it did.
func (d *decision) givenUpByHand(declared Declaration, entry record.Entry) bool {
	asked := d.state.Release == declared.ID || d.state.Release == object.ReleaseAll
	failed := entry.Outcome == record.Failed || entry.Outcome == record.Retry
	if declared.Verb != cause.Delete || !asked || !failed {
		return false
	}
	d.plan.GivenUp = append(d.plan.GivenUp, GivenUp{
		Run: declared.last(entry), Why: entry.Message, ByHand: true, Result: Result{Outcome: record.Done},
	})
	return true
}

// Blocked lists the delete handlers that have failed permanently and block the deletion, in the order of their declaration.
func (k Kind) Blocked(r record.Record) []string {
	var blocked []string
	for _, declared := range k.Handlers {
		entry := r.Handlers[declared.ID]
		if declared.Verb == cause.Delete && entry.Outcome == record.Failed && declared.keeps(entry) {
			blocked = append(blocked, declared.ID)
		}
	}
	return blocked
}

// keeps reports whether a delete handler with this entry blocks the deletion.
func (d Declaration) keeps(entry record.Entry) bool {
	released := (d.Releases || d.Optional) && entry.Outcome == record.Failed
	return entry.Outcome != record.Done && entry.Outcome != record.Outside && !released
}

// release removes the finalizer of a deleted object if no delete handler has to run and no daemon has to end any more.
func (d *decision) release() {
	done := d.plan.Record.Deleted || d.kind.deletionDone(d.plan.Record)
	if d.state.Marked && !d.state.Held && (done || !d.kind.holdsFor(d.scope, cause.Delete)) {
		d.plan.Finalizer = Remove
	}
}

// dropUnneeded removes the finalizer of an object that no delete handler and no daemon matches any more.
func (d *decision) dropUnneeded() {
	if d.state.Marked && !d.state.Held && !d.kind.holdsDeletion(d.scope) {
		d.plan.Finalizer = Remove
	}
}
