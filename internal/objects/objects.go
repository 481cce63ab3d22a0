// Package objects has an entry for each object of one kind: what has arrived for it and waits, and what the process knows of it. It starts no goroutine.
//
// Any goroutine may add what has arrived. The queue gives an object to one worker at a time, so only that worker uses what is known, without a lock.
package objects

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects has the entries of one kind. Known is what the process knows of an object. The zero value is ready to use.
type Objects[Known any] struct {
	// mu guards all fields and entries, but not what a Known points to.
	mu    sync.Mutex
	byKey map[types.NamespacedName]*entry[Known]
	memos map[string]*sync.Map
	// ends are when the last objects ended whose deletion was handled, by uid. ended are their uids in this order.
	ends  map[string]time.Time
	ended []string
	// delivered are the objects of the last events, by name, if keepsDelivered. before are those of an earlier watch that were not compared yet.
	keepsDelivered    bool
	delivered, before map[types.NamespacedName]client.Object
}

// entry is what belongs to a name. Another object can get the name, and its mail can arrive before the end of the first is handled.
type entry[Known any] struct {
	known    *Known
	triggers map[string][]Trigger
	events   []Event
	edits    []Edits
}

// Known returns what is known of the object that had this name last, or nil.
func (o *Objects[Known]) Known(key types.NamespacedName) *Known {
	o.mu.Lock()
	defer o.mu.Unlock()
	if found := o.byKey[key]; found != nil {
		return found.known
	}
	return nil
}

// Know sets what is known of the object that has this name.
func (o *Objects[Known]) Know(key types.NamespacedName, known *Known) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entry(key).known = known
}

// Forget removes what is known. What has arrived stays.
func (o *Objects[Known]) Forget(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.change(key, func(e *entry[Known]) { e.known = nil })
}

// Keys returns the names of all objects of which something is known or has arrived.
func (o *Objects[Known]) Keys() []types.NamespacedName {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.byKey))
}

// All returns what is known of all objects. No worker may use it meanwhile.
func (o *Objects[Known]) All() map[types.NamespacedName]*Known {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make(map[types.NamespacedName]*Known, len(o.byKey))
	for key, one := range o.byKey {
		if one.known != nil {
			all[key] = one.known
		}
	}
	return all
}

// entry returns the entry of a name, which it makes if there is none. The lock is held.
func (o *Objects[Known]) entry(key types.NamespacedName) *entry[Known] {
	found := o.byKey[key]
	if found == nil {
		if o.byKey == nil {
			o.byKey = map[types.NamespacedName]*entry[Known]{}
		}
		found = &entry[Known]{}
		o.byKey[key] = found
	}
	return found
}

// change changes the entry of a name, if there is one, and removes it if nothing is left in it. The lock is held.
func (o *Objects[Known]) change(key types.NamespacedName, how func(*entry[Known])) {
	found := o.byKey[key]
	if found == nil {
		return
	}
	how(found)
	if found.known == nil && len(found.triggers) == 0 && len(found.events) == 0 && len(found.edits) == 0 {
		delete(o.byKey, key)
	}
}
