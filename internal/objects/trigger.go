package objects

import (
	"slices"
	"strings"

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

// Names formats triggers for logs.
func Names(of []Trigger) string {
	all := make([]string, len(of))
	for i, one := range of {
		all[i] = one.String()
	}
	return strings.Join(all, ", ")
}

// PutTrigger adds a trigger of a handler. Of one related object only the newest change is kept.
func (o *Objects[Known]) PutTrigger(key types.NamespacedName, handler string, by Trigger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.entry(key)
	if e.triggers == nil {
		e.triggers = map[string][]Trigger{}
	}
	known := e.triggers[handler]
	for i, other := range known {
		if other.Kind == by.Kind && other.NamespacedName == by.NamespacedName {
			known[i] = by
			return
		}
	}
	switch {
	case len(known) < mostNamed:
		e.triggers[handler] = append(known, by) // mutant: trigger-dropped
	case by.Event == Deleted: // A deletion must stay: see TriggeredByDeletion.
		known[mostNamed-1] = by
	}
}

// Triggered returns the handlers of an object that have triggers.
func (o *Objects[Known]) Triggered(key types.NamespacedName) map[string]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.byKey[key]
	if e == nil || len(e.triggers) == 0 {
		return nil
	}
	woken := make(map[string]bool, len(e.triggers))
	for handler := range e.triggers {
		woken[handler] = true
	}
	return woken
}

// TriggeredByDeletion reports whether the deletion of a related object is among the triggers of a handler.
func (o *Objects[Known]) TriggeredByDeletion(key types.NamespacedName, handler string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.byKey[key]
	return e != nil && slices.ContainsFunc(e.triggers[handler], func(by Trigger) bool { return by.Event == Deleted })
}

// TakeTriggers returns the triggers of a handler and removes them. A later trigger runs the handler again.
func (o *Objects[Known]) TakeTriggers(key types.NamespacedName, handler string) []Trigger {
	o.mu.Lock()
	defer o.mu.Unlock()
	var taken []Trigger
	o.change(key, func(e *entry[Known]) {
		taken = e.triggers[handler]
		delete(e.triggers, handler)
	})
	return taken
}

// DropTriggers removes all triggers of an object.
func (o *Objects[Known]) DropTriggers(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.change(key, func(e *entry[Known]) { e.triggers = nil })
}
