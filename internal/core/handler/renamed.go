package handler

import (
	"maps"
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// claimed gives each handler the entry that belongs to it: one under a former id, or, after a rollback, one under the id that a later
// release gave the handler. It never assigns an entry of another verb. This alone is not a reason to write; the next write includes
// it.
func (k Kind) claimed(stored *record.Record) *record.Record {
	r := *stored
	for _, declared := range k.Handlers {
		r = declared.ownVerb(r)
		for _, former := range declared.Former {
			if entry, has := r.Handlers[former]; !has || declared.fits(entry) {
				r = r.Renamed(former, declared.ID)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.Handlers)) {
		r = k.rolledBack(r, id)
	}
	return &r
}

// ownVerb detaches an entry from a handler that has the same id as an earlier handler with another verb. While the entry is still
// needed, it is stored under an id that no handler can have. A release with the original verb finds it there.
func (d Declaration) ownVerb(r record.Record) record.Record {
	entry, has := r.Handlers[d.ID]
	switch {
	case has && d.Verb == cause.Update && entry.Cause == string(cause.Create) && !d.fits(entry):
		return setAside(r, d, entry) // The handler no longer handles creations.
	case has && !d.fits(entry): // mutant: entry-of-another-verb
		r = r.Renamed(d.ID, parked(d.ID, entry.Cause))
	}
	for _, reason := range []cause.Cause{d.Verb, cause.Create} {
		id := parked(d.ID, string(reason))
		if entry, has := r.Handlers[id]; has && d.fits(entry) {
			r = r.Renamed(id, d.ID)
		}
	}
	return r
}

func parked(id, reason string) string { return id + record.StepMark + reason }

// rolledBack gives the entry of an undeclared handler to the handler that later had its id.
func (k Kind) rolledBack(r record.Record, id string) record.Record {
	if _, declared := k.find(id); declared {
		return r
	}
	entry := r.Handlers[id]
	for _, former := range entry.Former {
		declared, found := k.find(former)
		if _, taken := r.Handlers[former]; found && !taken && declared.fits(entry) {
			return r.Renamed(id, former) // mutant: roll-back-of-an-id
		}
	}
	return r
}

// fits reports whether an entry can belong to the handler.
func (d Declaration) fits(entry record.Entry) bool { return entry.Cause == string(d.reason(entry)) }

// undeclared removes the entries of handlers that are not declared. It keeps what a release that declares them again needs: creations
// that have not succeeded, and effects with an unknown result.
func (k Kind) undeclared(r record.Record) record.Record {
	for id, entry := range r.Handlers {
		_, declared := k.find(id)
		created := entry.Cause != string(cause.Create) || entry.Outcome == record.Done
		if !declared && created && !record.Unknown(entry.Steps) { // mutant: undeclared-creation-done
			r = r.Without(id)
		}
	}
	return r
}

// closed marks as late what remains of a creation when it is closed: creations of handlers that are not declared.
func (k Kind) closed(r record.Record) record.Record {
	for id, entry := range r.Handlers {
		if _, declared := k.find(id); !declared && entry.Cause == string(cause.Create) {
			entry.Late = true
			r = r.With(id, entry)
		}
	}
	return r
}

// formerly stores with each entry the former ids of its handler, for a rollback to a release that knows the handler by one of them.
func (k Kind) formerly(r record.Record) record.Record {
	for _, declared := range k.Handlers {
		if entry, has := r.Handlers[declared.ID]; has && !slices.Equal(entry.Former, declared.Former) {
			entry.Former = declared.Former
			r = r.With(declared.ID, entry)
		}
	}
	return r
}

// reason returns the cause that the handler of an entry sees.
func (d Declaration) reason(entry record.Entry) cause.Cause {
	if d.AtCreation && entry.Cause == string(cause.Create) {
		return cause.Create
	}
	return d.Verb
}

// abandoned reports whether a creation is open although its handlers are no longer declared. It has to be closed: otherwise
// everything that the object has would be a change to every update handler.
func (k Kind) abandoned(r record.Record, s State) bool {
	if r.Base != "" || s.Deleting {
		return false
	}
	for _, declared := range k.Handlers {
		if blocksCreation(declared, r.Handlers[declared.ID]) {
			return false
		}
	}
	return true
}
