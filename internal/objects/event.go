package objects

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/cause"
)

// The kinds of events of a watch. No object is reconciled with one of them as the cause.
const (
	Listed   cause.Cause = "listed"   // the object was there when the process began
	Added    cause.Cause = "added"    // it was created, or has come into sight
	Modified cause.Cause = "modified" // it was changed
	Deleted  cause.Cause = "deleted"  // it is gone
)

// Event is one event of the watch.
type Event struct {
	Kind   cause.Cause
	Object client.Object
}

// PutEvent adds an event. Of several changes in a row only the newest is kept, so that an object which changes faster than it
// is handled takes no more room.
func (o *Objects[Known]) PutEvent(key types.NamespacedName, next Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deliver(key, next)
	e := o.entry(key)
	if last := len(e.events) - 1; last >= 0 && next.Kind == Modified && e.events[last].Kind == Modified {
		e.events[last] = next
		return
	}
	e.events = append(e.events, next)
}

// PutEventsBack returns events that were not delivered.
func (o *Objects[Known]) PutEventsBack(key types.NamespacedName, undelivered []Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.entry(key)
	e.events = append(slices.Clone(undelivered), e.events...)
}

// TakeEvents returns the events of an object in their order, and removes them.
func (o *Objects[Known]) TakeEvents(key types.NamespacedName) []Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	var taken []Event
	o.change(key, func(e *entry[Known]) { taken, e.events = e.events, nil })
	return taken
}
