// Package record is the durable state of one operator about one object: which essences its handlers have seen, and the progress
// of handlers that have not finished. A record is a value: functions return a changed copy.
package record

import (
	"maps"
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Version is the format version that this release writes. It rejects newer versions.
const Version = 1

// Outcome is the result of a handler's last attempt.
type Outcome string

// The outcomes. Pending: the handler was never attempted. Retry: it failed and will be retried. Waiting: it asked to be called again,
// without failing. Done and Failed are final. Outside is not the result of an attempt: so far the object has not matched the handler.
const (
	Pending Outcome = "pending"
	Retry   Outcome = "retry"
	Waiting Outcome = "waiting"
	Done    Outcome = "done"
	Failed  Outcome = "failed"
	Outside Outcome = "outside"
)

// Open reports whether the handler still has to be called.
func (o Outcome) Open() bool { return o != Done && o != Failed && o != Outside }

// Entry is the progress of one handler, where it does not follow from the rest of the record: the handler is open, has failed
// permanently, or has seen another essence than Base. A handler without an entry has finished with Base.
type Entry struct {
	// Cause is the cause that the handler runs for: create, update, resume or delete.
	Cause   string  `json:"cause"`
	Outcome Outcome `json:"outcome"`
	// Seen is the digest of the newest essence that the handler has finished with, or "".
	Seen string `json:"seen,omitempty"`
	// Tried is the digest of the handler's view at the last attempt, as in Essence.Views. A different view ends the backoff.
	Tried    string `json:"tried,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
	// Started is when the first attempt started. Next is the earliest time of the next attempt.
	Started time.Time `json:"started,omitzero"`
	Next    time.Time `json:"next,omitzero"`
	// Asked means that the handler itself set Next, so that an edit does not start the next attempt earlier.
	Asked   bool   `json:"asked,omitempty"`
	Message string `json:"message,omitempty"`
	// Late marks a creation that started after the object's creation was closed, because the object began to match the handler
	// later. It does not delay other handlers.
	Late bool `json:"late,omitempty"`
	// Steps are the finished parts of an open handler, by id; the id of a nested step starts with the id of the outer step. Effects
	// are included even if they have no result yet, and they are kept after a permanent failure.
	Steps map[string]Step `json:"steps,omitempty"`
	// Since is the digest of the essence that the oldest of the Steps was done with. Mixed means that later steps were done after
	// the handler's view had changed.
	Since string `json:"since,omitempty"`
	Mixed bool   `json:"mixed,omitempty"`
	// Former lists the ids that the handler had in earlier releases.
	Former []string `json:"former,omitempty"`
}

// Essence is a stored essence and its digest. If it is too large, only the digests of the handlers' views are stored. If a record has more
// than Decode reads, an essence has neither: see Unread.
type Essence struct {
	Digest string
	Body   object.Body
	// Views holds the digests of the handlers' views, by handler id, in place of a Body. A digest may have two parts: one of the view
	// as it was and one of its minimal form (see object.Minimal). Package handler creates and compares them.
	Views map[string]string
	// Status names the status fields that Body would contain if the object had them. Body says nothing about all others.
	Status []string
}

// Record is what an operator remembers about one object.
type Record struct {
	Version    int    `json:"v"`
	UID        string `json:"uid"`
	APIVersion string `json:"apiVersion"`
	// Writes counts how often the record was stored with new content. Of two records of an object, the one with the lower number is older.
	Writes int `json:"writes,omitempty"`
	// Base is the digest of the essence that every handler without an entry has finished with. It is "" until the creation has been
	// closed for the first time.
	Base string `json:"base,omitempty"`
	// Deleted means that all delete handlers have finished, while other finalizers still keep the object.
	Deleted bool `json:"deleted,omitempty"`
	// Recreated is the newest token for which the create handlers were run again, or that was found already used.
	Recreated string `json:"recreated,omitempty"`
	// Doubted is set while the creation of an object is open that had no record although an earlier process may have handled it.
	Doubted bool `json:"doubted,omitempty"`
	// Seen holds the essences that Base and the entries refer to, oldest first.
	Seen     []Essence        `json:"seen,omitempty"`
	Handlers map[string]Entry `json:"handlers,omitempty"`
}

// Open reports whether a handler has begun and not finished.
func (r Record) Open() bool {
	for _, entry := range r.Handlers {
		if entry.Outcome.Open() {
			return true
		}
	}
	return false
}

// New returns an empty record of an object.
func New(uid, apiVersion string) Record {
	return Record{Version: Version, UID: uid, APIVersion: apiVersion}
}

// With returns the record with this entry for the handler.
func (r Record) With(id string, entry Entry) Record {
	r.Handlers = maps.Clone(r.Handlers)
	if r.Handlers == nil {
		r.Handlers = make(map[string]Entry, 1)
	}
	r.Handlers[id] = entry
	return r
}

// Without returns the record without the entry of the handler.
func (r Record) Without(id string) Record {
	if _, found := r.Handlers[id]; !found {
		return r
	}
	r.Handlers = maps.Clone(r.Handlers)
	delete(r.Handlers, id)
	return r
}

// Renamed returns the record with everything about one handler moved to another id. What the other id already has is kept.
func (r Record) Renamed(from, to string) Record {
	if entry, found := r.Handlers[from]; found {
		if _, taken := r.Handlers[to]; !taken {
			r = r.With(to, entry)
		}
		r = r.Without(from)
	}
	for _, seen := range r.Seen {
		view, found := seen.Views[from]
		if _, taken := seen.Views[to]; found && !taken {
			r = r.WithView(seen.Digest, to, view)
		}
	}
	return r
}

// Keep returns the record with this essence added to the seen ones, and the digest of the essence. If the essence is too large to
// be stored, Keep calls views for the digests of the handlers' views.
func (r Record) Keep(essence object.Body, views func() map[string]string) (Record, string) {
	digest := object.Digest(essence)
	if _, found := r.Essence(digest); found {
		return r, digest
	}
	kept := Essence{Digest: digest, Body: essence}
	if !kept.fits() {
		kept = Essence{Digest: digest, Views: views()}
	}
	r.Seen = append(slices.Clip(r.Seen), kept)
	return r, digest
}

// KeepDigests returns the record with an essence of which only digests are stored: its own and those of the handlers' views.
func (r Record) KeepDigests(digest string, views map[string]string) Record {
	if _, found := r.Essence(digest); !found {
		r.Seen = append(slices.Clip(r.Seen), Essence{Digest: digest, Views: views})
	}
	return r
}

// WithoutBodies returns the record with digests in place of every stored essence. Views returns the digests of the handlers' views
// of an essence.
func (r Record) WithoutBodies(views func(essence object.Body) map[string]string) Record {
	r.Seen = slices.Clone(r.Seen)
	for i, seen := range r.Seen {
		if seen.Body != nil {
			r.Seen[i] = Essence{Digest: seen.Digest, Views: views(seen.Body)}
		}
	}
	return r
}

// WithoutMessages returns the record without the error texts of its entries.
func (r Record) WithoutMessages() Record {
	r.Handlers = maps.Clone(r.Handlers)
	for id, entry := range r.Handlers {
		entry.Message = ""
		r.Handlers[id] = entry
	}
	return r
}

// WithView returns the record with the digest of another handler's view of a stored essence.
func (r Record) WithView(digest, id, view string) Record {
	r.Seen = slices.Clone(r.Seen)
	for i, seen := range r.Seen {
		if seen.Digest == digest {
			views := maps.Clone(seen.Views)
			if views == nil {
				views = make(map[string]string, 1)
			}
			views[id] = view
			r.Seen[i].Views = views
		}
	}
	return r
}

// Covering returns the record with the names of the status fields that a stored essence covers.
func (r Record) Covering(digest string, status []string) Record {
	at := r.Age(digest)
	if at < 0 || r.Seen[at].Body == nil || slices.Equal(r.Seen[at].Status, status) {
		return r
	}
	r.Seen = slices.Clone(r.Seen)
	r.Seen[at].Status = status
	return r
}

// Essence returns the essence that is stored under this digest.
func (r Record) Essence(digest string) (Essence, bool) {
	for _, seen := range r.Seen {
		if seen.Digest == digest {
			return seen, true
		}
	}
	return Essence{}, false
}

// Age returns the position of a stored essence, 0 for the oldest, or -1 if it is not stored.
func (r Record) Age(digest string) int {
	return slices.IndexFunc(r.Seen, func(seen Essence) bool { return seen.Digest == digest })
}

// Pruned returns the record without essences that nothing refers to.
func (r Record) Pruned() Record {
	needed := map[string]bool{r.Base: true}
	for _, entry := range r.Handlers {
		needed[entry.Seen], needed[entry.Since] = true, true
	}
	kept := make([]Essence, 0, len(r.Seen))
	for _, seen := range r.Seen {
		if needed[seen.Digest] {
			kept = append(kept, seen)
		}
	}
	r.Seen = kept
	if len(r.Handlers) == 0 {
		r.Handlers = nil
	}
	return r
}
