package objects

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KeepDelivered sets whether the object of the last event is kept for each name, so that a later watch can be compared with it.
func (o *Objects[Known]) KeepDelivered(kept bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keepsDelivered = kept
}

// BeginWatch begins a watch. What was delivered before is compared with its first list: see Delivered and NotListed.
func (o *Objects[Known]) BeginWatch() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.before, o.delivered = o.delivered, map[types.NamespacedName]client.Object{}
}

// Delivered returns the object of the last event that an earlier watch has delivered for the name, or nil. It returns each object once.
func (o *Objects[Known]) Delivered(key types.NamespacedName) client.Object {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.before[key]
	delete(o.before, key)
	if before != nil {
		o.delivered[key] = before
	}
	return before
}

// NotListed returns the objects that an earlier watch has delivered and Delivered has not returned: the first list does not have them. It returns them once.
func (o *Objects[Known]) NotListed() []client.Object {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []client.Object
	for _, before := range o.before {
		all = append(all, before)
	}
	o.before = nil
	return all
}

// deliver keeps the object of an event, if objects are kept. The lock is held.
func (o *Objects[Known]) deliver(key types.NamespacedName, next Event) {
	switch {
	case !o.keepsDelivered:
	case next.Kind == Deleted:
		delete(o.delivered, key)
	default:
		o.delivered[key] = next.Object
	}
}
