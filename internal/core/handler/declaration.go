// Package handler decides, from the declared handlers and the state of one object, which handlers run now and which wait until when.
// It also folds their results into the object's record. It is pure: the current time is an argument.
package handler

import (
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Declaration is a declared handler of a kind.
type Declaration struct {
	// ID is unique in its kind and must not change between releases, because records refer to it.
	ID string
	// Verb is the cause that the handler handles: Create, Update, Delete, Resume, Reconcile, Timer or Daemon.
	Verb cause.Cause
	// Optional, for delete handlers and daemons, means that no finalizer is set for the handler.
	Optional bool
	// AlsoDeleting, for resume handlers, means that they also run for objects that are being deleted.
	AlsoDeleting bool
	// Fields are the fields that the handler looks at. None means the whole essence except the status.
	Fields []object.Path
	// Scope selects the objects that the handler matches; nil matches all.
	Scope filter.Filter
	// Changes are the conditions of an update handler on a change. All of them must match.
	Changes []filter.Change
	// AtCreation means that an update handler also handles the creation, if the object has what the handler looks at.
	AtCreation bool
	// Limits bound the attempts for one cause.
	Limits Limits
	// Former lists the ids that the handler had in earlier releases.
	Former []string
	// Releases, for delete handlers, means that the object is released when the handler has failed permanently.
	Releases bool
	// Owns lists the status fields that no other handler may write.
	Owns []object.Path
	// Timing defines when a timer runs.
	Timing Timing
}

// Recorded reports whether the handler's progress is stored in the object's record. The state of all other handlers is kept in
// memory only, so that they start from the beginning in a new process.
func (d Declaration) Recorded() bool {
	return d.Verb != cause.Reconcile && d.Verb != cause.Timer && d.Verb != cause.Daemon
}

// Kind is what is declared for one kind of object.
type Kind struct {
	// Handlers are in the order of their declaration, which is the order in which they run.
	Handlers []Declaration
	// Normalize converts an essence of an earlier release into the form in which objects are read now, by filling in defaults and
	// zero values where fields are absent. It must be pure. Nil leaves essences as they are.
	Normalize func(object.Body) object.Body
	// Digests makes the digests. If it has a key, only digests of essences are stored.
	Digests object.Digester
}

// Owner returns the handler that owns a status field that a change by another handler touches.
func (k Kind) Owner(by string, enters func(object.Path) bool) (owner string, found bool) {
	for _, declared := range k.Handlers {
		if declared.ID != by && slices.ContainsFunc(declared.Owns, enters) {
			return declared.ID, true
		}
	}
	return "", false
}

// holdsDeletion reports whether an object needs the finalizer, for delete handlers or for daemons that have to end first.
func (k Kind) holdsDeletion(in scope) bool {
	return k.holdsFor(in, cause.Delete) || k.holdsFor(in, cause.Daemon)
}

func (k Kind) holdsFor(in scope, verb cause.Cause) bool {
	return slices.ContainsFunc(k.Handlers, func(declared Declaration) bool {
		return declared.Verb == verb && !declared.Optional && !in.outside[declared.ID]
	})
}

func (k Kind) has(verb cause.Cause) bool {
	for _, declared := range k.Handlers {
		if declared.Verb == verb {
			return true
		}
	}
	return false
}

func (k Kind) find(id string) (Declaration, bool) {
	for _, declared := range k.Handlers {
		if declared.ID == id {
			return declared, true
		}
	}
	return Declaration{}, false
}

// keep adds an essence to the seen ones.
func (k Kind) keep(r record.Record, essence object.Body) (record.Record, string) {
	views := func() map[string]string { return k.viewDigests(r.UID, essence) }
	if !k.Digests.HasKey() {
		r, digest := r.Keep(essence, views)
		return r.Covering(digest, k.covered()), digest
	}
	digest := k.Digests.Of(r.UID, essence)
	return r.KeepDigests(digest, views()), digest
}

// viewDigests returns the digests of the update handlers' views of an essence.
func (k Kind) viewDigests(uid string, essence object.Body) map[string]string {
	found := map[string]string{}
	for _, declared := range k.Handlers {
		if declared.Verb == cause.Update {
			found[declared.ID] = k.viewDigest(uid, declared, essence)
		}
	}
	return found
}

// seenBy returns what a handler has seen last: its own essence or, without one, the common one.
func seenBy(r record.Record, id string) (digest string, kept record.Essence, found bool) {
	digest = r.Base
	if entry, has := r.Handlers[id]; has && entry.Seen != "" {
		digest = entry.Seen
	}
	kept, found = r.Essence(digest)
	return digest, kept, found
}

// hasSeen reports whether a handler sees no difference between a stored essence and the current one.
func (k Kind) hasSeen(r record.Record, declared Declaration, kept record.Essence, current object.Body) bool {
	if kept.Unread() {
		return kept.Digest == k.Digests.Of(r.UID, current)
	}
	if kept.Body != nil {
		return k.sameView(declared, kept.Body, current)
	}
	view, known := kept.Views[declared.ID]
	return !known || k.sameDigest(r.UID, declared, view, current)
}

// normalized returns a stored essence in the form in which objects are read now, so that a diff shows only actual changes.
func (k Kind) normalized(kept object.Body) object.Body {
	if kept == nil || k.Normalize == nil {
		return kept
	}
	return k.Normalize(kept)
}

// sameView reports whether a handler sees no difference between two essences. An earlier release may have stored the first one.
func (k Kind) sameView(declared Declaration, kept, current object.Body) bool {
	view := object.View(current, declared.Fields)
	if object.Equal(object.View(kept, declared.Fields), view) {
		return true
	}
	return k.Normalize != nil && object.Equal(object.View(k.Normalize(kept), declared.Fields), view)
}
