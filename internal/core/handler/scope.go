package handler

import (
	"errors"
	"fmt"
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// scope is what the filters say of one object as it is now.
type scope struct {
	// outside are the handlers that it is not for.
	outside map[string]bool
	// unborn are the handlers that would answer a creation too, but find nothing that they look at.
	unborn map[string]bool
}

// EveryObject tells whether every object of the kind gets a record: some handler is for all of them.
func (k Kind) EveryObject() bool {
	return slices.ContainsFunc(k.Handlers, func(declared Declaration) bool {
		return declared.Scope == nil && declared.Recorded()
	})
}

// recorded tells whether an object needs a record.
func (k Kind) recorded(in scope) bool {
	return slices.ContainsFunc(k.Handlers, func(declared Declaration) bool {
		return declared.Recorded() && !in.outside[declared.ID]
	})
}

// scopeOf asks the filters of all handlers. The error names those that could not be asked.
func (k Kind) scopeOf(s State) (scope, error) {
	in := scope{outside: map[string]bool{}, unborn: map[string]bool{}}
	var failed error
	var named object.Body
	for _, declared := range k.Handlers {
		if declared.Scope != nil && !begunDeletion(declared, s.Record) {
			if named == nil {
				named = s.named()
			}
			holds, err := filter.Test(declared.Scope, named)
			failed = errors.Join(failed, filterError(declared, err))
			in.outside[declared.ID] = !holds
		}
		if declared.AtCreation && !s.Deleting {
			wanted, err := k.wantsNew(declared, s.Essence)
			failed = errors.Join(failed, filterError(declared, err))
			in.unborn[declared.ID] = !wanted
		}
	}
	return in, failed
}

func filterError(declared Declaration, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the filters of handler %q cannot tell whether it is for this object: %w", declared.ID, err)
}

// begunDeletion: a deletion that a handler has begun is finished, whatever becomes of the object meanwhile.
func begunDeletion(declared Declaration, r *record.Record) bool {
	if declared.Verb != cause.Delete || r == nil {
		return false
	}
	entry, has := r.Handlers[declared.ID]
	return has && entry.Outcome != record.Outside
}

// named is the essence with the names of the object.
func (s State) named() object.Body {
	body := s.Essence
	for element, text := range map[string]string{"namespace": s.Namespace, "name": s.Name, "uid": s.UID} {
		if text != "" {
			body = object.With(body, object.Path{"metadata", element}, text)
		}
	}
	return body
}

// Concerns tells whether an object is one that the handler is for. Of the state names and essence are looked at.
func (d Declaration) Concerns(s State) (bool, error) {
	if d.Scope == nil {
		return true, nil
	}
	holds, err := filter.Test(d.Scope, s.named())
	return holds, filterError(d, err)
}

// alien tells whether no handler is for the object, and none ever was.
func (k Kind) alien(s State, in scope) bool {
	return s.Record == nil && !slices.ContainsFunc(k.Handlers, func(declared Declaration) bool { return !in.outside[declared.ID] })
}

// creates tells whether a creation has something to do for the object.
func (k Kind) creates(in scope) bool {
	return slices.ContainsFunc(k.Handlers, func(declared Declaration) bool {
		return !in.outside[declared.ID] && (declared.Verb == cause.Create || declared.AtCreation && !in.unborn[declared.ID])
	})
}

// rescope notes which handlers the object is not for any more, and begins for those that it is for from now on: their
// creation, or, for update handlers, the state that they start from. It tells whether there was anything to note.
func (k Kind) rescope(r record.Record, s State, in scope) (record.Record, bool) {
	moved := false
	for _, declared := range k.Handlers {
		if (declared.Verb == cause.Delete) != s.Deleting {
			continue // While it is deleted nothing else is noted, and before that nothing has to be.
		}
		entry, has := r.Handlers[declared.ID]
		switch out := in.outside[declared.ID]; {
		case out && entry.Outcome != record.Outside && leaves(declared, entry, has):
			r, moved = k.left(r, declared, entry), true
		case !out && entry.Outcome == record.Outside:
			r, moved = k.entered(r, declared, entry, s, in), true
		}
	}
	return r, moved
}

// leaves tells whether it has to be noted that an object is not for the handler. A creation that is done stays done.
func leaves(declared Declaration, entry record.Entry, has bool) bool {
	switch declared.Verb {
	case cause.Create:
		return has && entry.Outcome != record.Done
	case cause.Update, cause.Delete:
		return true
	case cause.Resume:
		return has
	case cause.Reconcile, cause.Timer, cause.Daemon, cause.Gone, cause.Alien, cause.Free, cause.Lost, cause.Noop:
	}
	return false
}

func (k Kind) left(r record.Record, declared Declaration, entry record.Entry) record.Record {
	unknown := record.Unknown(entry.Steps) // mutant: intent-forgotten-outside
	if declared.Verb == cause.Resume && !unknown {
		return r.Without(declared.ID)
	}
	out := record.Entry{Cause: string(declared.Verb), Outcome: record.Outside}
	if unknown {
		out.Steps, out.Since, out.Mixed = record.Effects(entry.Steps), entry.Since, entry.Mixed
	}
	if creating(declared, entry) { // It goes on where it was, should the object come back.
		out.Cause, out.Attempts, out.Started = entry.Cause, entry.Attempts, entry.Started
		out.Steps, out.Since, out.Mixed = lasting(entry), entry.Since, entry.Mixed
		if entry.Outcome == record.Waiting || entry.Outcome == record.Failed {
			out.Attempts = 1 // That it has run is to be known; a failure for good does not count on.
		}
	}
	return r.With(declared.ID, out)
}

func (k Kind) entered(r record.Record, declared Declaration, entry record.Entry, s State, in scope) record.Record {
	created := entry.Cause == string(cause.Create) && !in.unborn[declared.ID]
	switch {
	case declared.Verb == cause.Create || declared.AtCreation && created:
		entry.Outcome, entry.Late = record.Pending, r.Base != ""
		return r.With(declared.ID, entry)
	case declared.Verb == cause.Update && r.Base != "":
		return k.seenNow(r, declared, s.Essence)
	default:
		return setAside(r, declared, entry)
	}
}

// seenNow makes an update handler done with an essence without having run.
func (k Kind) seenNow(r record.Record, declared Declaration, essence object.Body) record.Record {
	r, seen := k.keep(r, essence)
	entry := r.Handlers[declared.ID]
	entry.Seen = seen
	if r = setAside(r, declared, entry); record.Unknown(entry.Steps) {
		return r
	}
	return r.With(declared.ID, record.Entry{Cause: string(cause.Update), Outcome: record.Done, Seen: seen})
}

// creating tells whether the handler is in its creation, or failed in it.
func creating(declared Declaration, entry record.Entry) bool {
	return entry.Cause == string(cause.Create) && (declared.Verb == cause.Create || declared.AtCreation) &&
		(entry.Outcome.Open() || entry.Outcome == record.Failed)
}

// creatingStill tells whether a creation that is to be closed waits for the handler.
func creatingStill(declared Declaration, entry record.Entry) bool {
	return creating(declared, entry) && entry.Outcome.Open() && !entry.Late
}

// wantsNew tells whether a handler that answers creations too finds what it looks at, as it wants it.
func (k Kind) wantsNew(declared Declaration, essence object.Body) (bool, error) {
	if len(object.View(essence, declared.Fields)) == 0 && len(declared.Fields) > 0 {
		return false, nil
	}
	for _, change := range declared.Changes {
		if holds, err := change.TestNew(essence); !holds || err != nil {
			return false, err
		}
	}
	return true, nil
}

// wants tells whether an update handler answers what has changed in its view.
func (k Kind) wants(declared Declaration, kept record.Essence, essence object.Body) (bool, error) {
	if len(declared.Changes) == 0 {
		return true, nil
	}
	from := k.today(kept.Body)
	for _, change := range declared.Changes {
		if holds, err := change.Test(from, essence); !holds || err != nil {
			return false, err
		}
	}
	return true, nil
}
