package awslab

import (
	"slices"
	"time"
)

// remembered is for how long versions are kept after the next: longer than any sensible Options.ReadLag.
const remembered = 10 * time.Minute

// history has the versions of a thing, so that reads can lag behind writes.
type history[T any] struct{ versions []version[T] }

type version[T any] struct {
	since time.Time
	value T
	there bool
}

// put adds a version.
func (h *history[T]) put(value T, there bool) {
	now := time.Now()
	first := 0
	for first+1 < len(h.versions) && now.Sub(h.versions[first+1].since) > remembered {
		first++
	}
	h.versions = append(h.versions[first:], version[T]{now, value, there})
}

// latest is what writes see.
func (h *history[T]) latest() (T, bool) { return h.asOf(0) }

// asOf is what is seen by a read that lags.
func (h *history[T]) asOf(lag time.Duration) (T, bool) {
	var none T
	if h == nil {
		return none, false
	}
	seen := time.Now().Add(-lag)
	for _, at := range slices.Backward(h.versions) {
		if lag == 0 || !at.since.After(seen) {
			return at.value, at.there
		}
	}
	return none, false
}

// find returns the last version that was there and is what is looked for.
func (h *history[T]) find(is func(T) bool) (T, bool) {
	for _, at := range slices.Backward(h.versions) {
		if at.there && is(at.value) {
			return at.value, true
		}
	}
	var none T
	return none, false
}

// keep adds a version to the history of a name.
func keep[T any](all map[string]*history[T], name string, value T, there bool) {
	if all[name] == nil {
		all[name] = &history[T]{}
	}
	all[name].put(value, there)
}
