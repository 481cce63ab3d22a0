package handler

import (
	"maps"
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// claimed gives each handler the entry that is its own: the one under an id of an earlier release, the one under the id that
// a later release gave it, before a roll-back, and none of another verb. It is not a reason to write: the next write has it.
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

// ownVerb takes an entry away from a handler that has its id from a handler of another verb. As long as the entry must not be
// forgotten it stays under an id that no handler can have, and a release that has the verb again finds it there.
func (d Declaration) ownVerb(r record.Record) record.Record {
	entry, has := r.Handlers[d.ID]
	switch {
	case has && d.Verb == cause.Update && entry.Cause == string(cause.Create) && !d.fits(entry):
		return setAside(r, d, entry) // It answers creations no more.
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

// rolledBack gives the entry of a handler that is not declared to the one that had its id later on.
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

// fits reports whether an entry can be of the handler.
func (d Declaration) fits(entry record.Entry) bool { return entry.Cause == string(d.reason(entry)) }

// undeclared keeps of the handlers that are not declared what a release that declares them again needs: creations that have not
// succeeded, and effects of which the result is unknown.
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

// closed makes late what is left of a creation when it is closed: creations of handlers that are not declared.
func (k Kind) closed(r record.Record) record.Record {
	for id, entry := range r.Handlers {
		if _, declared := k.find(id); !declared && entry.Cause == string(cause.Create) {
			entry.Late = true
			r = r.With(id, entry)
		}
	}
	return r
}

// formerly notes with each entry the ids that its handler had, for a roll-back to a release that knows it by one of them.
func (k Kind) formerly(r record.Record) record.Record {
	for _, declared := range k.Handlers {
		if entry, has := r.Handlers[declared.ID]; has && !slices.Equal(entry.Former, declared.Former) {
			entry.Former = declared.Former
			r = r.With(declared.ID, entry)
		}
	}
	return r
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
