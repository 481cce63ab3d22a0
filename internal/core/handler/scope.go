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

// scope is the result of the filters for one object in its current state.
type scope struct {
	// outside holds the handlers that the object does not match.
	outside map[string]bool
	// noInitialView holds the handlers that would also handle a creation, but whose fields the object does not have.
	noInitialView map[string]bool
}

// EveryObject reports whether every object of the kind gets a record, because a recorded handler matches all of them.
func (k Kind) EveryObject() bool {
	return slices.ContainsFunc(k.Handlers, func(declared Declaration) bool {
		return declared.Scope == nil && declared.Recorded()
	})
}

// recorded reports whether an object needs a record.
func (k Kind) recorded(in scope) bool {
	return slices.ContainsFunc(k.Handlers, func(declared Declaration) bool {
		return declared.Recorded() && !in.outside[declared.ID]
	})
}

// scopeOf evaluates the filters of all handlers. The error names the handlers whose filters failed.
func (k Kind) scopeOf(s State) (scope, error) {
	in := scope{outside: map[string]bool{}, noInitialView: map[string]bool{}}
	var failed error
	var named object.Body
	for _, declared := range k.Handlers {
		if declared.Scope != nil && !deletionStarted(declared, s.Record) {
			if named == nil {
				named = s.withNames()
			}
			holds, err := filter.Test(declared.Scope, named)
			failed = errors.Join(failed, filterError(declared, err))
			in.outside[declared.ID] = !holds
		}
		if declared.AtCreation && !s.Deleting {
			wanted, err := k.wantsNew(declared, s.Essence)
			failed = errors.Join(failed, filterError(declared, err))
			in.noInitialView[declared.ID] = !wanted
		}
	}
	return in, failed
}

func filterError(declared Declaration, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("evaluate filters of handler %q: %w", declared.ID, err)
}

// deletionStarted reports whether a delete handler has started. It is then finished even if the object stops matching.
func deletionStarted(declared Declaration, r *record.Record) bool {
	if declared.Verb != cause.Delete || r == nil {
		return false
	}
	entry, has := r.Handlers[declared.ID]
	return has && entry.Outcome != record.Outside
}

// withNames returns the essence with the namespace, name and uid of the object.
func (s State) withNames() object.Body {
	body := s.Essence
	for element, text := range map[string]string{"namespace": s.Namespace, "name": s.Name, "uid": s.UID} {
		if text != "" {
			body = object.With(body, object.Path{"metadata", element}, text)
		}
	}
	return body
}

// Concerns reports whether the handler matches an object. It reads only the names and the essence from the state.
func (d Declaration) Concerns(s State) (bool, error) {
	if d.Scope == nil {
		return true, nil
	}
	holds, err := filter.Test(d.Scope, s.withNames())
	return holds, filterError(d, err)
}

// unmatched reports whether no handler matches the object and none ever did.
func (k Kind) unmatched(s State, in scope) bool {
	return s.Record == nil && !slices.ContainsFunc(k.Handlers, func(declared Declaration) bool { return !in.outside[declared.ID] })
}

// creates reports whether a handler has to handle the creation of the object.
func (k Kind) creates(in scope) bool {
	return slices.ContainsFunc(k.Handlers, func(declared Declaration) bool {
		return !in.outside[declared.ID] && (declared.Verb == cause.Create || declared.AtCreation && !in.noInitialView[declared.ID])
	})
}

// syncScope records which handlers the object no longer matches. For handlers that it begins to match, it starts their creation or,
// for update handlers, sets the state that they start from. The result reports whether anything has changed.
func (k Kind) syncScope(r record.Record, s State, in scope) (record.Record, bool) {
	moved := false
	for _, declared := range k.Handlers {
		if (declared.Verb == cause.Delete) != s.Deleting {
			continue // During a deletion only delete handlers matter, and before it they do not.
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

// leaves reports whether to record that an object does not match the handler. A finished creation stays finished.
func leaves(declared Declaration, entry record.Entry, has bool) bool {
	switch declared.Verb {
	case cause.Create:
		return has && entry.Outcome != record.Done
	case cause.Update, cause.Delete:
		return true
	case cause.Resume:
		return has
	case cause.Reconcile, cause.Timer, cause.Daemon, cause.Gone, cause.Unmatched, cause.Free, cause.Lost, cause.Noop:
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
	if creating(declared, entry) { // If the object matches again, the creation continues where it was.
		out.Cause, out.Attempts, out.Started = entry.Cause, entry.Attempts, entry.Started
		out.Steps, out.Since, out.Mixed = lasting(entry), entry.Since, entry.Mixed
		switch entry.Outcome { //nolint:exhaustive // The others have not run.
		case record.Waiting, record.Failed:
			out.Attempts = 1 // Records that the handler has run; attempts before a permanent failure no longer count.
		case record.Retry:
			out.Attempts = max(entry.Attempts, 1)
		}
	}
	return r.With(declared.ID, out)
}

func (k Kind) entered(r record.Record, declared Declaration, entry record.Entry, s State, in scope) record.Record {
	created := entry.Cause == string(cause.Create) && !in.noInitialView[declared.ID]
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

// seenNow records that an update handler has finished with an essence without having run.
func (k Kind) seenNow(r record.Record, declared Declaration, essence object.Body) record.Record {
	r, seen := k.keep(r, essence)
	entry := r.Handlers[declared.ID]
	entry.Seen = seen
	if r = setAside(r, declared, entry); record.Unknown(entry.Steps) {
		return r
	}
	return r.With(declared.ID, record.Entry{Cause: string(cause.Update), Outcome: record.Done, Seen: seen})
}

// creating reports whether the handler is in its creation or has failed in it.
func creating(declared Declaration, entry record.Entry) bool {
	return entry.Cause == string(cause.Create) && (declared.Verb == cause.Create || declared.AtCreation) &&
		(entry.Outcome.Open() || entry.Outcome == record.Failed)
}

// blocksCreation reports whether the handler prevents the creation from being closed.
func blocksCreation(declared Declaration, entry record.Entry) bool {
	return creating(declared, entry) && entry.Outcome.Open() && !entry.Late
}

// wantsNew reports whether an object that is new has the fields that the handler looks at, and whether the handler's conditions
// match.
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

// wants reports whether the conditions of an update handler match the change in its view.
func (k Kind) wants(declared Declaration, kept record.Essence, essence object.Body) (bool, error) {
	if len(declared.Changes) == 0 {
		return true, nil
	}
	from := k.normalized(kept.Body)
	for _, change := range declared.Changes {
		if holds, err := change.Test(from, essence); !holds || err != nil {
			return false, err
		}
	}
	return true, nil
}
