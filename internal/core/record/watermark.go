package record

import (
	"slices"
	"time"
)

// Watermark follows the creation time up to which every object of one kind has had a record. An object that is as
// old and has none has lost it: creation times are the API server's, are kept by a replace, and are new on a restored
// or copied object. It is not safe for concurrent use.
type Watermark struct {
	// At is the watermark; zero for none.
	At time.Time
	// Margin is how old an object must be before the watermark passes it: objects can arrive late, and clocks differ.
	Margin time.Duration

	missing    map[string]time.Time
	candidates []time.Time
}

// Covers tells whether an object created then has had a record.
func (w *Watermark) Covers(created time.Time) bool {
	return !w.At.IsZero() && !created.After(w.At)
}

// Missing notes an object that has no record yet: the watermark stays below it.
func (w *Watermark) Missing(key string, created time.Time) {
	if w.missing == nil {
		w.missing = map[string]time.Time{}
	}
	w.missing[key] = created
}

// Recorded notes an object that has a record.
func (w *Watermark) Recorded(key string, created time.Time) {
	delete(w.missing, key)
	if w.Covers(created) {
		return
	}
	if at, found := slices.BinarySearchFunc(w.candidates, created, time.Time.Compare); !found {
		w.candidates = slices.Insert(w.candidates, at, created)
	}
}

// Gone notes an object that does not exist any more.
func (w *Watermark) Gone(key string) { delete(w.missing, key) }

// Next is the watermark that could be stored now, and whether it is newer than At. It only moves when newer objects
// have records.
func (w *Watermark) Next(now time.Time) (time.Time, bool) {
	limit := now.Add(-w.Margin)
	for _, created := range w.missing {
		if before := created.Add(-time.Second); before.Before(limit) {
			limit = before
		}
	}
	next, moved := w.At, false
	for _, candidate := range w.candidates {
		if !candidate.After(limit) {
			next, moved = candidate, true
		}
	}
	return next, moved
}

// Moved notes that the watermark was stored.
func (w *Watermark) Moved(to time.Time) {
	w.At = to
	w.candidates = slices.DeleteFunc(w.candidates, w.Covers)
}
