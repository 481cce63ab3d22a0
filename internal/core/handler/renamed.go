package handler

import (
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// renamed gives handlers what is recorded under the ids of earlier releases. It is not a reason to write: whatever is
// written next is under the new id.
func (k Kind) renamed(stored *record.Record) *record.Record {
	r := *stored
	for _, declared := range k.Handlers {
		for _, former := range declared.Former {
			if entry, has := r.Handlers[former]; !has || entry.Cause == string(declared.reason(entry)) {
				r = r.Renamed(former, declared.ID)
			}
		}
	}
	return &r
}

// reason is what the handler of an entry is told.
func (d Declaration) reason(entry record.Entry) cause.Cause {
	if d.AtCreation && entry.Cause == string(cause.Create) {
		return cause.Create
	}
	return d.Verb
}

// abandoned tells whether a creation is open whose handlers are declared no more. It has to be closed: else what has been
// there since would be a change to every update handler.
func (k Kind) abandoned(r record.Record, s State) bool {
	if r.Base != "" || s.Deleting {
		return false
	}
	for _, declared := range k.Handlers {
		if creatingStill(declared, r.Handlers[declared.ID]) {
			return false
		}
	}
	return true
}
