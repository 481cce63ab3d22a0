// Package record is the durable memory of one operator about one object: which essences its handlers have seen, and
// how far those that are not finished have come. It is a value; every function returns a changed copy.
package record

import (
	"maps"
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Version is the format that this release writes. It reads this one and refuses newer ones.
const Version = 1

// Outcome is how the last attempt of a handler ended.
type Outcome string

// The outcomes of an attempt. Pending was never attempted; Retry failed and is tried again; Waiting asked to be
// called again without having failed; Done and Failed are final. Outside is no attempt: the object is none that the
// handler is for, so far.
const (
	Pending Outcome = "pending"
	Retry   Outcome = "retry"
	Waiting Outcome = "waiting"
	Done    Outcome = "done"
	Failed  Outcome = "failed"
	Outside Outcome = "outside"
)

// Open tells whether the handler has still to be called.
func (o Outcome) Open() bool { return o != Done && o != Failed && o != Outside }

// Entry is the progress of one handler that cannot be told from the rest of the record: it is open, has failed for
// good, or has seen another essence than Base. A handler without an entry is done with Base.
type Entry struct {
	// Cause is the reason under which the handler runs: create, update, resume or delete.
	Cause   string  `json:"cause"`
	Outcome Outcome `json:"outcome"`
	// Seen is the digest of the newest essence that the handler is done with, "" for none.
	Seen string `json:"seen,omitempty"`
	// Tried is the digest of the handler's view at the last attempt, as in Essence.Views: a view that differs ends a back-off.
	Tried    string `json:"tried,omitempty"`
	Attempts int    `json:"attempts,omitempty"`
	// Started is the time of the first attempt, Next the time before which there is no other.
	Started time.Time `json:"started,omitzero"`
	Next    time.Time `json:"next,omitzero"`
	// Asked is set when the handler named Next itself: then an edit does not wake it sooner.
	Asked   bool   `json:"asked,omitempty"`
	Message string `json:"message,omitempty"`
	// Late is set of a creation that began after that of the object was closed, since the object became one that the
	// handler is for. It holds nobody else up.
	Late bool `json:"late,omitempty"`
	// Steps are the parts of an open handler that are done, by id; those within others have the others' ids before their own.
	// Effects are among them also if there is no result yet; they outlast a failure for good.
	Steps map[string]Step `json:"steps,omitempty"`
	// Since is the digest of the essence that the oldest of the Steps was done with. Mixed is set when others of them were done
	// after somebody had changed what the handler looks at.
	Since string `json:"since,omitempty"`
	Mixed bool   `json:"mixed,omitempty"`
	// Former are the ids that the handler had in earlier releases.
	Former []string `json:"former,omitempty"`
}

// Essence is a kept essence under its digest. One that is too large is not kept itself, only the digests of the views
// that handlers have of it.
type Essence struct {
	Digest string
	Body   object.Body
	// Views holds the digests of the handlers' views, by handler, in place of a Body. One may be of two parts, that of the
	// view as it was and that of its minimal form (object.Minimal); who makes and compares them is core/handler.
	Views map[string]string
	// Status names the fields of the status that the Body would have if they had been there. Of all others it tells nothing.
	Status []string
}

// Record is what is remembered about one object.
type Record struct {
	Version    int    `json:"v"`
	UID        string `json:"uid"`
	APIVersion string `json:"apiVersion"`
	// Base is the digest of the essence that every handler without an entry is done with. It is "" until creation
	// has been closed for the first time.
	Base string `json:"base,omitempty"`
	// Deleted is set when all delete handlers are done, while finalizers of others keep the object.
	Deleted bool `json:"deleted,omitempty"`
	// Recreated is the newest token for which the create handlers were run once more, or found used.
	Recreated string `json:"recreated,omitempty"`
	// Doubted is set while the creation is open of an object that an earlier process may have handled, and of which there was no
	// record.
	Doubted bool `json:"doubted,omitempty"`
	// Seen holds the essences that Base and the entries point to, oldest first.
	Seen     []Essence        `json:"seen,omitempty"`
	Handlers map[string]Entry `json:"handlers,omitempty"`
}

// New is the empty record of an object.
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

// Without returns the record without an entry for the handler.
func (r Record) Without(id string) Record {
	if _, found := r.Handlers[id]; !found {
		return r
	}
	r.Handlers = maps.Clone(r.Handlers)
	delete(r.Handlers, id)
	return r
}

// Renamed returns the record with what it has for one handler under another id. What that id has already stays.
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

// Keep returns the record with this essence among the seen ones, and the essence's digest. Views gives the digests of
// the handlers' views; it is asked when the essence is too large to be kept.
func (r Record) Keep(essence object.Body, views func() map[string]string) (Record, string) {
	digest := object.Digest(essence)
	if _, found := r.Essence(digest); found {
		return r, digest
	}
	kept := Essence{Digest: digest, Body: essence}
	if kept.size() > EssenceLimit {
		kept = Essence{Digest: digest, Views: views()}
	}
	r.Seen = append(slices.Clip(r.Seen), kept)
	return r, digest
}

// KeepDigests returns the record with an essence of which only digests are kept, its own and those of the handlers' views.
func (r Record) KeepDigests(digest string, views map[string]string) Record {
	if _, found := r.Essence(digest); !found {
		r.Seen = append(slices.Clip(r.Seen), Essence{Digest: digest, Views: views})
	}
	return r
}

// WithoutBodies returns the record with digests in place of every essence that it keeps. Views gives the digests of the
// handlers' views of an essence.
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

// WithView returns the record with the digest of one more handler's view of a kept essence.
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

// Covering returns the record with the names of the fields of the status that a kept essence tells of.
func (r Record) Covering(digest string, status []string) Record {
	at := r.Age(digest)
	if at < 0 || r.Seen[at].Body == nil || slices.Equal(r.Seen[at].Status, status) {
		return r
	}
	r.Seen = slices.Clone(r.Seen)
	r.Seen[at].Status = status
	return r
}

// Essence returns what is kept under this digest.
func (r Record) Essence(digest string) (Essence, bool) {
	for _, seen := range r.Seen {
		if seen.Digest == digest {
			return seen, true
		}
	}
	return Essence{}, false
}

// Age orders the kept essences: 0 is the oldest, -1 is not kept.
func (r Record) Age(digest string) int {
	return slices.IndexFunc(r.Seen, func(seen Essence) bool { return seen.Digest == digest })
}

// Pruned returns the record without essences that nothing points to.
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
