package kindstore

import (
	"maps"
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// watermarks are the watermarks of one kind, by scope. There is one for each namespace if not all are served.
type watermarks struct {
	served filter.Namespaces
	margin time.Duration
	// narrow: the cache is limited to some namespaces, although all are served.
	narrow bool
	// stored is what the store holds.
	stored map[string]time.Time
	// scopes is nil where no watermarks are kept.
	scopes map[string]*record.Watermark
	held   map[string]heldBack
}

// heldBack is how long an object has held a watermark back.
type heldBack struct {
	uid      string
	since    time.Time
	reported bool
}

// load takes up the watermarks before the first object is reconciled.
func (w *watermarks) load(stored map[string]time.Time) {
	w.stored, w.scopes, w.held = stored, map[string]*record.Watermark{}, map[string]heldBack{}
}

// scopeOf returns the scope of the objects in a namespace.
func (w *watermarks) scopeOf(namespace string) string {
	if w.served.All() && !w.narrow {
		return ""
	}
	return namespace
}

// of returns the watermark of the objects in a namespace, or nil where no watermarks are kept. That of all namespaces holds for each of them, but not the
// reverse: a scope that grows starts without one.
func (w *watermarks) of(namespace string) *record.Watermark {
	if w.scopes == nil {
		return nil
	}
	scope := w.scopeOf(namespace)
	found, known := w.scopes[scope]
	if !known {
		at := w.stored[scope]
		if everywhere := w.stored[""]; everywhere.After(at) {
			at = everywhere
		}
		found = record.NewWatermark(at, w.margin)
		w.scopes[scope] = found
	}
	return found
}

// covers reports whether an object must have had a record. The stored watermark of its namespace counts also where one watermark is kept for all namespaces
// now, and was not before.
func (w *watermarks) covers(namespace string, created time.Time) bool {
	scope := w.of(namespace)
	if scope == nil {
		return false
	}
	at := w.stored[namespace]
	return scope.Covers(created) || !at.IsZero() && !created.After(at)
}

// known returns the scopes of which there are watermarks.
func (w *watermarks) known() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(w.scopes)), maps.Keys(w.stored))
}

// forget removes the watermark of a namespace that is gone. It reports whether there was one in the store.
func (w *watermarks) forget(namespace string) (stored bool) {
	_, stored = w.stored[namespace]
	delete(w.scopes, namespace)
	delete(w.held, namespace)
	delete(w.stored, namespace)
	return stored
}

// holds returns the object that has held the watermark of a scope back for a long time. It does so once for each object.
func (w *watermarks) holds(scope string, now time.Time) (by record.MissingRecord, found bool) {
	watermark, known := w.scopes[scope]
	if !known {
		return by, false
	}
	by, uid, held := watermark.Held(now)
	last := w.held[scope]
	switch {
	case !held:
		delete(w.held, scope)
	case last.uid != uid:
		w.held[scope] = heldBack{uid: uid, since: now}
	case !last.reported && now.Sub(last.since) >= heldLong:
		last.reported = true
		w.held[scope] = last
		return by, true
	}
	return by, false
}
