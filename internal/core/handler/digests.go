package handler

import (
	"strings"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// unknown stands in a record for an essence that cannot be recovered. A handler that saw it last has a change to handle.
const unknown = "unknown"

// readable converts a record to the current key. Digests made with another key cannot be compared, so changes since then cannot be
// detected. Neither is a reason to run a handler: the current content counts as what finished handlers have seen. Unfinished
// handlers stay open: attempts, waits and failures are kept, and an update in progress continues. The result reports whether
// anything was converted.
func (k Kind) readable(r record.Record, current object.Body) (record.Record, bool) {
	if !k.unreadable(r) {
		return r, false
	}
	lost, known := r.Base, make([]record.Essence, 0, len(r.Seen))
	for _, seen := range r.Seen {
		if k.Digests.Made(seen.Digest) {
			known = append(known, seen)
		}
	}
	r.Seen = known
	r, now := k.keep(r, current)
	for id, entry := range r.Handlers {
		entry = k.readableEntry(entry, lost, now)
		if declared, found := k.find(id); found && k.foreign(entry.Tried) {
			entry.Tried = k.viewDigest(r.UID, declared, current)
		}
		r = r.With(id, entry)
	}
	if k.foreign(lost) {
		r.Base = now
	}
	return r, true
}

// readableEntry converts what a handler has seen. now is the digest of the current content, lost that of the former Base.
func (k Kind) readableEntry(entry record.Entry, lost, now string) record.Entry {
	under := entry.Cause == string(cause.Update) && entry.Outcome.Open()
	switch {
	case under && (k.foreign(entry.Seen) || entry.Seen == "" && k.foreign(lost)):
		entry.Seen = unknown
	case k.foreign(entry.Seen):
		entry.Seen = now
	}
	if k.foreign(entry.Since) {
		entry.Since = now
	}
	return entry
}

func (k Kind) unreadable(r record.Record) bool {
	found := k.foreign(r.Base)
	for _, seen := range r.Seen {
		found = found || k.foreign(seen.Digest)
	}
	for _, entry := range r.Handlers {
		found = found || k.foreign(entry.Seen) || k.foreign(entry.Tried) || k.foreign(entry.Since)
	}
	return found
}

// foreign reports whether a digest was made with another key.
func (k Kind) foreign(digest string) bool {
	return digest != "" && digest != unknown && !k.Digests.Made(digest)
}

// backfillDigests gives a starting point to update handlers that an upgrade added, where only digests of an essence are stored and none
// of the handler's view: they start from the current content. The result reports whether there were any.
func (k Kind) backfillDigests(r record.Record, s State) (record.Record, bool) {
	added := false
	for _, declared := range k.Handlers {
		digest, kept, found := seenBy(r, declared.ID)
		_, known := kept.Views[declared.ID]
		if declared.Verb != cause.Update || s.Deleting || !found || kept.Body != nil || kept.Unread() || known {
			continue
		}
		r, added = r.WithView(digest, declared.ID, k.viewDigest(r.UID, declared, s.Essence)), true
	}
	return r, added
}

// minimalMark separates the two digests of a view.
const minimalMark = "+"

// viewDigest returns what is stored in place of a handler's view: its digest and, if it differs, that of its minimal form. Unlike
// an essence, a digest cannot be converted into the form in which a later release reads objects. But what that release fills in,
// a new default or the zero value of a new field, is not part of the minimal form. Conversely, a value that the user has set can be
// part of the current minimal form, but not of that of a release in which the value is a default. Therefore the digest of the
// complete view is stored too.
func (k Kind) viewDigest(uid string, declared Declaration, essence object.Body) string {
	view := k.Digests.Of(uid, object.View(essence, declared.Fields))
	if minimal := k.minimalDigest(uid, declared, essence); minimal != view {
		return view + minimalMark + minimal
	}
	return view
}

// sameDigest reports whether a handler sees no difference between the view of a stored digest and the current one. Values that are
// filled in do not count as a difference.
func (k Kind) sameDigest(uid string, declared Declaration, kept string, current object.Body) bool {
	view, minimal, two := strings.Cut(kept, minimalMark)
	if !two {
		minimal = view
	}
	return view == k.Digests.Of(uid, object.View(current, declared.Fields)) || minimal == k.minimalDigest(uid, declared, current)
}

func (k Kind) minimalDigest(uid string, declared Declaration, essence object.Body) string {
	frame := object.Frame(essence, declared.Fields)
	if k.Normalize == nil {
		return k.Digests.Of(uid, frame)
	}
	return k.Digests.Of(uid, object.Minimal(frame, func(part object.Body) object.Body {
		return object.Frame(k.Normalize(part), declared.Fields)
	}))
}
