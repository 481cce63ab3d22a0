package engine

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// past is what a process knows of the objects of one kind beside what is stored. It outlives a keeper whose kind is
// watched in another version from then on: the objects are the same.
type past struct {
	memories memories
	memos    memos
	inbox    inbox
	lately   lately
}

// takeUp prepares the past for another keeper. Changes in between have triggered no handlers, so the handlers that watch other kinds
// look again.
func (b *past) takeUp(woken []Relation) *past {
	b.memories.mu.Lock()
	defer b.memories.mu.Unlock()
	for _, known := range b.memories.byKey {
		for _, relation := range woken {
			delete(known.levels, relation.Handler)
		}
	}
	return b
}

// known are the objects of which something is remembered.
func (m *memories) known() []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]types.NamespacedName, 0, len(m.byKey))
	for key := range m.byKey {
		all = append(all, key)
	}
	return all
}

// lately is what observers were told of last, for a keeper that takes over from another one in the same process.
type lately struct {
	mu     sync.Mutex
	kept   bool
	byKey  map[types.NamespacedName]client.Object
	before map[types.NamespacedName]client.Object
	shared cache.Informer
}

// begin notes what is watched from now on. What was told until now is what the first list is compared with.
func (s *lately) begin(shared cache.Informer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared, s.before, s.byKey = shared, s.byKey, map[types.NamespacedName]client.Object{}
}

// ended reports whether other code has ended the watch.
func (s *lately) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shared != nil && s.shared.IsStopped()
}

// note notes that an event was delivered.
func (s *lately) note(event event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(event.object)
	switch {
	case !s.kept:
	case event.kind == Deleted:
		delete(s.byKey, key)
	default:
		s.byKey[key] = event.object
	}
}

// was is the object of that name that was told of before the first list; nil for none. It is asked for once.
func (s *lately) was(key types.NamespacedName) client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.before[key]
	delete(s.before, key)
	if before != nil {
		s.byKey[key] = before
	}
	return before
}

// rest are the objects that were told of before the first list, and are not in it.
func (s *lately) rest() []client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []client.Object
	for _, before := range s.before {
		all = append(all, before)
	}
	s.before = nil
	return all
}

// noteListed keeps what the first list shows, as far as it is news.
func (k *keeper) noteListed(listed any) {
	now, is := objectOf(listed)
	if !is {
		return
	}
	before := k.lately.was(client.ObjectKeyFromObject(now))
	switch {
	case before == nil:
		k.noteEvent(Listed, listed)
	case !unchanged(before, listed):
		k.noteUpdate(before, listed)
	}
}

// catchUp looks for what became of objects that are known and may not be there any more, after the first list.
func (k *keeper) catchUp() {
	for _, gone := range k.lately.rest() {
		k.noteEvent(Deleted, gone)
		enqueue(k.queue, gone)
	}
	for _, key := range k.memories.known() {
		k.wake(key)
	}
}
