package objects

import (
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// FirstList tracks the objects that existed when the operator began to watch their kind, until their first reconciliation. It logs a summary once.
type FirstList struct {
	Log *slog.Logger

	// mu guards the fields below.
	mu       sync.Mutex
	complete bool
	reported bool
	waiting  map[types.NamespacedName]progress
	// backlog holds the keys of the list in the order of arrival. Some of them may not wait any more.
	backlog []types.NamespacedName
	total   int
	handled int
	// newest is the creation time of the newest of them.
	newest time.Time
}

// progress is that of an object of the list: whether its first reconciliation has begun, and whether a handler ran.
type progress struct{ begun, handled bool }

// Expect adds an object that existed before this process saw it. It can come after the first list, from a namespace in which
// the watch was forbidden until then.
func (l *FirstList) Expect(key types.NamespacedName, created time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if created.After(l.newest) {
		l.newest = created
	}
	if l.waiting == nil {
		l.waiting = map[types.NamespacedName]progress{}
	}
	if _, known := l.waiting[key]; known {
		return
	}
	l.waiting[key] = progress{} // mutant: late-namespace-is-new
	if !l.complete {
		l.backlog = append(l.backlog, key)
		l.total++
	}
}

// Begin records that a reconciliation of the object begins.
func (l *FirstList) Begin(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first, waiting := l.waiting[key]; waiting {
		first.begun = true
		l.waiting[key] = first
	}
}

// Invoked records that a handler runs for an object.
func (l *FirstList) Invoked(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first, waiting := l.waiting[key]; waiting && !first.handled {
		first.handled = true
		l.waiting[key] = first
		l.handled++
	}
}

// Done records that the first reconciliation of the object has ended, or that the object is gone.
func (l *FirstList) Done(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, key)
	l.report()
}

// Complete reports whether the list is complete.
func (l *FirstList) Complete() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.complete
}

// AllDone reports whether all objects of the list are done.
func (l *FirstList) AllDone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.complete && len(l.waiting) == 0
}

// LongestWaiting returns up to n objects of the list whose first reconciliation has not begun, each once. It reports whether there may be more.
func (l *FirstList) LongestWaiting(n int) (keys []types.NamespacedName, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.complete {
		return nil, true
	}
	for len(l.backlog) > 0 && len(keys) < n {
		if first, waiting := l.waiting[l.backlog[0]]; waiting && !first.begun {
			keys = append(keys, l.backlog[0])
		}
		l.backlog = l.backlog[1:]
	}
	if len(l.backlog) == 0 {
		l.backlog = nil
	}
	return keys, l.backlog != nil
}

// Waits reports whether the object is in the list and not done.
func (l *FirstList) Waits(key types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, waiting := l.waiting[key]
	return waiting
}

// Predates reports whether an object with this creation time may have existed when the operator started.
func (l *FirstList) Predates(created time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !created.After(l.newest)
}

// End records that the list is complete.
func (l *FirstList) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.complete = true
	l.report()
}

// report logs the summary when all objects of the list are done. The lock is held.
func (l *FirstList) report() {
	if l.reported || !l.complete || len(l.waiting) > 0 {
		return
	}
	l.reported, l.waiting, l.backlog = true, nil, nil
	switch {
	case l.total == 0:
		l.Log.Info("watching, no objects yet")
	case l.handled == 0:
		l.Log.Info("watching, all objects are up to date", "objects", l.total)
	default:
		l.Log.Info("watching, caught up with existing objects", "objects", l.total, "handled", l.handled)
	}
}
