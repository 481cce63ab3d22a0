package record

import (
	"slices"
	"time"
)

// maxCandidates limits the number of creation times that a watermark chooses from, so that its memory is bounded.
const maxCandidates = 1024

// Watermark tracks the creation time up to which every object of one kind has had a record. An object of that age without a record
// has lost it. This is reliable because the API server sets creation times: a replace keeps them, and a restored or copied object
// gets a new one. Objects are identified by uid. A Watermark is not safe for concurrent use.
type Watermark struct {
	// At is the watermark, zero if there is none.
	At time.Time
	// Margin is how old an object must be before the watermark passes it: objects can arrive late, and clocks differ.
	Margin time.Duration

	// stored is what the ConfigMap holds. It is below At while an object that arrived after At had passed it has no record.
	stored  time.Time
	missing map[string]MissingRecord
	// candidates are creation times above At of objects with a record, in any order and with duplicates: see compact.
	candidates []time.Time
}

// MissingRecord is an object without a record.
type MissingRecord struct {
	// Name is the namespace and name of the object.
	Name    string
	Created time.Time
}

// below is the highest watermark that does not cover the object. Creation times have a resolution of one second.
func (m MissingRecord) below() time.Time { return m.Created.Add(-time.Second) }

// NewWatermark returns a watermark as it was stored.
func NewWatermark(stored time.Time, margin time.Duration) *Watermark {
	return &Watermark{At: stored, stored: stored, Margin: margin, missing: map[string]MissingRecord{}}
}

// Covers reports whether an object created then has had a record.
func (w *Watermark) Covers(created time.Time) bool {
	return !w.At.IsZero() && !created.After(w.At)
}

// Missing adds an object that has no record yet: the watermark stays below it. An object that the watermark covers should have
// a record, and does not hold it back.
func (w *Watermark) Missing(uid, name string, created time.Time) {
	if !w.Covers(created) {
		w.missing[uid] = MissingRecord{Name: name, Created: created}
	}
}

// Arrived adds an object that a watch has delivered as a new one. It reports whether the stored watermark covers the
// object and must be lowered.
func (w *Watermark) Arrived(uid, name string, created time.Time) (late bool) {
	w.missing[uid] = MissingRecord{Name: name, Created: created}
	return !w.stored.IsZero() && !created.After(w.stored)
}

// Recorded removes an object that has a record now.
func (w *Watermark) Recorded(uid string, created time.Time) {
	delete(w.missing, uid)
	last := len(w.candidates) - 1
	if w.Covers(created) || last >= 0 && w.candidates[last].Equal(created) {
		return
	}
	w.candidates = append(w.candidates, created)
	if len(w.candidates) > 2*maxCandidates { // mutant: candidates-unbounded
		w.compact()
	}
}

// compact sorts the candidates. If there are too many it drops every other one, which can only lower the watermark. It never
// drops the newest, which the watermark must reach in the end.
func (w *Watermark) compact() {
	slices.SortFunc(w.candidates, time.Time.Compare)
	w.candidates = slices.CompactFunc(w.candidates, time.Time.Equal)
	for len(w.candidates) > maxCandidates {
		kept := w.candidates[:0]
		for i, candidate := range w.candidates {
			if i%2 == (len(w.candidates)-1)%2 {
				kept = append(kept, candidate)
			}
		}
		w.candidates = kept
	}
}

// Gone removes an object that does not exist any more, or will never have a record.
func (w *Watermark) Gone(uid string) { delete(w.missing, uid) }

// Next returns the watermark that should be stored now, and whether it differs from the stored one. It rises only when
// newer objects have records. It falls while an object that arrived late has no record.
func (w *Watermark) Next(now time.Time) (next time.Time, moved bool) {
	limit := now.Add(-w.Margin)
	if oldest, _, found := w.oldest(); found { // mutant: missing-ignored
		below := oldest.below()
		if below.Before(w.At) {
			return below, !below.Equal(w.stored)
		}
		if below.Before(limit) {
			limit = below
		}
	}
	w.compact()
	next = w.At
	for _, candidate := range w.candidates {
		if !candidate.After(limit) {
			next = candidate
		}
	}
	return next, !next.Equal(w.stored)
}

func (w *Watermark) oldest() (oldest MissingRecord, uid string, found bool) {
	for id, missing := range w.missing {
		if !found || missing.Created.Before(oldest.Created) {
			oldest, uid, found = missing, id, true
		}
	}
	return oldest, uid, found
}

// Held returns the object that holds the watermark back although newer objects have records, and its uid.
func (w *Watermark) Held(now time.Time) (by MissingRecord, uid string, held bool) {
	by, uid, held = w.oldest()
	held = held && slices.ContainsFunc(w.candidates, func(candidate time.Time) bool {
		return candidate.After(by.below()) && !candidate.After(now.Add(-w.Margin))
	})
	return by, uid, held
}

// Lowers reports whether a watermark that Next returned is lower than the stored one.
func (w *Watermark) Lowers(next time.Time) bool { return next.Before(w.stored) }

// Moved sets what was stored.
func (w *Watermark) Moved(to time.Time) {
	w.stored = to
	if to.After(w.At) {
		w.At = to
		w.candidates = slices.DeleteFunc(w.candidates, w.Covers)
	}
}
