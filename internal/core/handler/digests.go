package handler

import (
	"strings"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// unknown stands in a record for an essence that nobody can tell any more. Who has seen it last has a change to see.
const unknown = "unknown"

// readable brings a record up to today's key. What was digested with another key cannot be compared, whether anything
// has changed since cannot be told, and neither is a reason to run anything: what handlers are done with counts as what
// is there now. What they are not done with stays open: attempts, waits and failures are kept, and an update that was
// under way goes on. It tells whether there was anything to bring up.
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

// readableEntry brings up what a handler has seen: now is what is there now, lost what every handler was done with.
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

// foreign tells whether a digest was made with another key.
func (k Kind) foreign(digest string) bool {
	return digest != "" && digest != unknown && !k.Digests.Made(digest)
}

// acquainted gives update handlers that were added since a beginning where only digests of an essence are kept, and none
// of theirs: they have seen what is there now. It tells whether there were any.
func (k Kind) acquainted(r record.Record, s State) (record.Record, bool) {
	added := false
	for _, declared := range k.Handlers {
		digest, kept, found := seenBy(r, declared.ID)
		_, known := kept.Views[declared.ID]
		if declared.Verb != cause.Update || s.Deleting || !found || kept.Body != nil || known {
			continue
		}
		r, added = r.WithView(digest, declared.ID, k.viewDigest(r.UID, declared, s.Essence)), true
	}
	return r, added
}

// minimalMark stands between the two digests of a view.
const minimalMark = "+"

// viewDigest is what is kept of a handler's view in place of the view: its digest and, where it differs, that of its
// minimal form. A digest cannot be brought into the form in which a later release reads objects, as an essence can. But
// what that release fills in, a new default or the zero value of a new field, is in no minimal form. What an object was
// given itself may be in today's minimal form and not in that of a release with other defaults: that is why the view as
// it is counts too.
func (k Kind) viewDigest(uid string, declared Declaration, essence object.Body) string {
	view := k.Digests.Of(uid, object.View(essence, declared.Fields))
	if minimal := k.minimalDigest(uid, declared, essence); minimal != view {
		return view + minimalMark + minimal
	}
	return view
}

// sameDigest tells whether a handler sees no difference between the view that a digest was kept of and the current one:
// either nothing differs, or only what is filled in.
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
