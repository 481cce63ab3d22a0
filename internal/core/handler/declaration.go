// Package handler decides, from declared handlers and the state of one object, who runs now, who waits and until
// when; and folds what they did into the object's record. It is pure: the time comes in as an argument.
package handler

import (
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Declaration is one declared handler of a kind.
type Declaration struct {
	// ID is unique in its kind and stays the same over releases: records refer to it.
	ID string
	// Verb is the cause that the handler answers: Create, Update, Delete, Resume, Reconcile, Timer or Daemon.
	Verb cause.Cause
	// Optional is for delete handlers and daemons: no finalizer holds the object for it.
	Optional bool
	// AlsoDeleting is for resume handlers: they run for objects that are being deleted too.
	AlsoDeleting bool
	// Fields are what the handler looks at; none means the whole essence without the status.
	Fields []object.Path
	// Scope tells which objects the handler is for; nil for all.
	Scope filter.Filter
	// Changes are what an update handler wants of a change; all must hold.
	Changes []filter.Change
	// AtCreation: an update handler answers the creation too, where there is something that it looks at.
	AtCreation bool
	// Limits bound the attempts of one handling of one cause.
	Limits Limits
	// Former are ids that the handler had in earlier releases.
	Former []string
	// Releases: a delete handler that has failed for good lets its object go.
	Releases bool
	// Owns are the fields of the status that no other handler writes.
	Owns []object.Path
	// Timing says when a timer runs.
	Timing Timing
}

// Recorded tells whether what the handler does is entered into the object's record. How the others stand is known to the
// process alone: a new one begins anew.
func (d Declaration) Recorded() bool {
	return d.Verb != cause.Reconcile && d.Verb != cause.Timer && d.Verb != cause.Daemon
}

// Kind is what is declared for one kind of objects.
type Kind struct {
	// Handlers are in the order of their declaration, which is the order in which they run.
	Handlers []Declaration
	// Normalize brings an essence of an earlier release into the form in which today's objects are read: it puts defaults
	// and zero values where something is left out. It must be pure. Nil leaves essences as they are.
	Normalize func(object.Body) object.Body
	// Digests makes the digests. With a key, nothing but digests is kept of an essence.
	Digests object.Digester
}

// Owner is the handler that owns a field which a change by another one enters.
func (k Kind) Owner(by string, enters func(object.Path) bool) (owner string, found bool) {
	for _, declared := range k.Handlers {
		if declared.ID != by && slices.ContainsFunc(declared.Owns, enters) {
			return declared.ID, true
		}
	}
	return "", false
}

// holdsDeletion tells whether an object needs our finalizer: for delete handlers, or for daemons that have to end first.
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

// keep puts an essence among the seen ones.
func (k Kind) keep(r record.Record, essence object.Body) (record.Record, string) {
	views := func() map[string]string { return k.viewDigests(r.UID, essence) }
	if !k.Digests.HasKey() {
		r, digest := r.Keep(essence, views)
		return r.Covering(digest, k.covered()), digest
	}
	digest := k.Digests.Of(r.UID, essence)
	return r.KeepDigests(digest, views()), digest
}

// viewDigests are the digests of the views that update handlers have of an essence.
func (k Kind) viewDigests(uid string, essence object.Body) map[string]string {
	found := map[string]string{}
	for _, declared := range k.Handlers {
		if declared.Verb == cause.Update {
			found[declared.ID] = k.viewDigest(uid, declared, essence)
		}
	}
	return found
}

// seenBy is what a handler has seen last: its own essence, else the one common to all.
func seenBy(r record.Record, id string) (digest string, kept record.Essence, found bool) {
	digest = r.Base
	if entry, has := r.Handlers[id]; has && entry.Seen != "" {
		digest = entry.Seen
	}
	kept, found = r.Essence(digest)
	return digest, kept, found
}

// hasSeen tells whether a handler of a record sees no difference between a kept essence and the current one.
func (k Kind) hasSeen(r record.Record, declared Declaration, kept record.Essence, current object.Body) bool {
	if kept.Body != nil {
		return k.sameView(declared, kept.Body, current)
	}
	view, known := kept.Views[declared.ID]
	return !known || k.sameDigest(r.UID, declared, view, current)
}

// today is an essence in the form in which today's objects are read, so that a difference to one of them shows only what
// somebody has changed.
func (k Kind) today(kept object.Body) object.Body {
	if kept == nil || k.Normalize == nil {
		return kept
	}
	return k.Normalize(kept)
}

// sameView tells whether a handler sees no difference between two essences, the first of which may have been written
// by an earlier release.
func (k Kind) sameView(declared Declaration, kept, current object.Body) bool {
	view := object.View(current, declared.Fields)
	if object.Equal(object.View(kept, declared.Fields), view) {
		return true
	}
	return k.Normalize != nil && object.Equal(object.View(k.Normalize(kept), declared.Fields), view)
}
