package engine

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/cause"
)

// mostNamed is how many objects are named that have woken one run of a handler.
const mostNamed = 10

// Waker is a related object whose change has woken a handler.
type Waker struct {
	Kind string
	types.NamespacedName
	// Event is what has happened to it: Listed, Added, Modified or Deleted.
	Event cause.Cause
}

// String names the object and what has happened to it.
func (w Waker) String() string {
	return w.Kind + " " + strings.TrimPrefix(w.NamespacedName.String(), "/") + " " + string(w.Event)
}

// names lists wakers as logs show them.
func names(of []Waker) string {
	all := make([]string, len(of))
	for i, one := range of {
		all[i] = one.String()
	}
	return strings.Join(all, ", ")
}

// wakes are the changes of related objects that handlers have not looked at yet, by object and handler.
type wakes struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]map[string][]Waker
}

// put notes that a handler is woken. Of one related object only the newest change is named.
func (w *wakes) put(key types.NamespacedName, handler string, by Waker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey == nil {
		w.byKey = map[types.NamespacedName]map[string][]Waker{}
	}
	if w.byKey[key] == nil {
		w.byKey[key] = map[string][]Waker{}
	}
	known := w.byKey[key][handler]
	for i, other := range known {
		if other.Kind == by.Kind && other.NamespacedName == by.NamespacedName {
			known[i] = by
			return
		}
	}
	switch {
	case len(known) < mostNamed:
		w.byKey[key][handler] = append(known, by) // mutant: trigger-dropped
	case by.Event == Deleted: // That something is gone is looked at: see byEnd.
		known[mostNamed-1] = by
	}
}

// of tells which handlers of an object are woken.
func (w *wakes) of(key types.NamespacedName) map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byKey[key]) == 0 {
		return nil
	}
	woken := make(map[string]bool, len(w.byKey[key]))
	for handler := range w.byKey[key] {
		woken[handler] = true
	}
	return woken
}

// byEnd reports whether a handler is woken because something is gone.
func (w *wakes) byEnd(key types.NamespacedName, handler string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.byKey[key][handler], func(by Waker) bool { return by.Event == Deleted })
}

// take gives a handler what has woken it. What comes from now on wakes it again.
func (w *wakes) take(key types.NamespacedName, handler string) []Waker {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.byKey[key][handler]
	delete(w.byKey[key], handler)
	if len(w.byKey[key]) == 0 {
		delete(w.byKey, key)
	}
	return taken
}

func (w *wakes) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byKey, key)
}
