package engine

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/cause"
)

// mostNamed is how many related objects are named as triggers of one run.
const mostNamed = 10

// Trigger is a related object whose change triggers a handler.
type Trigger struct {
	Kind string
	types.NamespacedName
	// Event is what has happened to it: Listed, Added, Modified or Deleted.
	Event cause.Cause
}

// String names the object and what has happened to it.
func (t Trigger) String() string {
	return t.Kind + " " + strings.TrimPrefix(t.NamespacedName.String(), "/") + " " + string(t.Event)
}

// names formats triggers for logs.
func names(of []Trigger) string {
	all := make([]string, len(of))
	for i, one := range of {
		all[i] = one.String()
	}
	return strings.Join(all, ", ")
}

// pendingTriggers are the triggers since the last run of each handler, by object and handler.
type pendingTriggers struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]map[string][]Trigger
}

// put adds a trigger. Of one related object only the newest change is kept.
func (t *pendingTriggers) put(key types.NamespacedName, handler string, by Trigger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey == nil {
		t.byKey = map[types.NamespacedName]map[string][]Trigger{}
	}
	if t.byKey[key] == nil {
		t.byKey[key] = map[string][]Trigger{}
	}
	known := t.byKey[key][handler]
	for i, other := range known {
		if other.Kind == by.Kind && other.NamespacedName == by.NamespacedName {
			known[i] = by
			return
		}
	}
	switch {
	case len(known) < mostNamed:
		t.byKey[key][handler] = append(known, by) // mutant: trigger-dropped
	case by.Event == Deleted: // A deletion must stay: see byDeletion.
		known[mostNamed-1] = by
	}
}

// of returns the handlers of an object that have triggers.
func (t *pendingTriggers) of(key types.NamespacedName) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.byKey[key]) == 0 {
		return nil
	}
	woken := make(map[string]bool, len(t.byKey[key]))
	for handler := range t.byKey[key] {
		woken[handler] = true
	}
	return woken
}

// byDeletion reports whether the deletion of a related object is among the triggers of a handler.
func (t *pendingTriggers) byDeletion(key types.NamespacedName, handler string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.byKey[key][handler], func(by Trigger) bool { return by.Event == Deleted })
}

// take returns the triggers of a handler and removes them. A later trigger runs the handler again.
func (t *pendingTriggers) take(key types.NamespacedName, handler string) []Trigger {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.byKey[key][handler]
	delete(t.byKey[key], handler)
	if len(t.byKey[key]) == 0 {
		delete(t.byKey, key)
	}
	return taken
}

func (t *pendingTriggers) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byKey, key)
}
