package engine

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/objects"
)

// kindState is what a process remembers of the objects of one kind. It outlives a keeper when the kind is watched in another version: the
// objects are the same.
type kindState struct {
	entries       objects.Objects[memory]
	lastDelivered lastDelivered
}

// takeUp prepares the state for another keeper. Changes in between have triggered no handlers, so the handlers that watch other kinds
// look again.
func (s *kindState) takeUp(woken []Relation) *kindState {
	for _, known := range s.entries.All() {
		for _, relation := range woken {
			delete(known.levels, relation.Handler)
		}
	}
	return s
}

// lastDelivered holds the last event that observers got of each object, for a keeper that takes over from another one in the same process.
type lastDelivered struct {
	mu     sync.Mutex
	kept   bool
	byKey  map[types.NamespacedName]client.Object
	before map[types.NamespacedName]client.Object
	shared cache.Informer
}

// begin starts with a new watch. Its first list is compared with what was delivered before.
func (s *lastDelivered) begin(shared cache.Informer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared, s.before, s.byKey = shared, s.byKey, map[types.NamespacedName]client.Object{}
}

// ended reports whether other code has ended the watch.
func (s *lastDelivered) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared != nil && s.shared.IsStopped()
}

// note remembers that an event was delivered.
func (s *lastDelivered) note(next objects.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(next.Object)
	switch {
	case !s.kept:
	case next.Kind == objects.Deleted:
		delete(s.byKey, key)
	default:
		s.byKey[key] = next.Object
	}
}

// was returns the object of that name that was delivered before the first list, nil for none. It does so once.
func (s *lastDelivered) was(key types.NamespacedName) client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.before[key]
	delete(s.before, key)
	if before != nil {
		s.byKey[key] = before
	}
	return before
}

// rest returns the objects that were delivered before the first list, and are not in it.
func (s *lastDelivered) rest() []client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []client.Object
	for _, before := range s.before {
		all = append(all, before)
	}
	s.before = nil
	return all
}

// noteListed delivers what the first list shows, unless it was delivered before.
func (k *keeper) noteListed(listed any) {
	now, is := objectOf(listed)
	if !is {
		return
	}
	before := k.lastDelivered.was(client.ObjectKeyFromObject(now))
	switch {
	case before == nil:
		k.noteEvent(objects.Listed, listed)
	case !unchanged(before, listed):
		k.noteUpdate(before, listed)
	}
}

// catchUp delivers, after the first list, the deletion of objects that are gone, and reconciles all that are remembered.
func (k *keeper) catchUp() {
	for _, gone := range k.lastDelivered.rest() {
		k.noteEvent(objects.Deleted, gone)
		enqueue(k.queue, gone)
	}
	for _, key := range k.entries.Keys() {
		k.wake(key)
	}
}
