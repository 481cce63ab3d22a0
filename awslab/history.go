package awslab

import (
	"slices"
	"time"
)

// retention is how long a version is kept after the next one was added. It must be longer than Options.ReadLag.
const retention = 10 * time.Minute

// history holds the versions of a resource, so that reads can lag behind writes.
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
	for first+1 < len(h.versions) && now.Sub(h.versions[first+1].since) > retention {
		first++
	}
	h.versions = append(h.versions[first:], version[T]{now, value, there})
}

// latest returns the current version, which writes see.
func (h *history[T]) latest() (T, bool) { return h.asOf(0) }

// asOf returns the version that a read sees with the given lag.
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

// find returns the latest existing version for which is reports true.
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
