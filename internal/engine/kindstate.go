package engine

import (
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/declared"
	"github.com/einmal-operators/einmal/internal/objects"
)

// kindState is what a process remembers of the objects of one kind. It outlives a keeper when the kind is watched in another version: the
// objects are the same.
type kindState struct {
	entries objects.Objects[memory]
	// shared is the informer that feeds the queue, nil before there is one.
	shared atomic.Pointer[cache.Informer]
}

// takeUp prepares the state for another keeper. Changes in between have triggered no handlers, so the handlers that watch other kinds
// look again.
func (s *kindState) takeUp(woken []declared.Relation) *kindState {
	for _, known := range s.entries.All() {
		for _, relation := range woken {
			delete(known.levels, relation.Handler)
		}
	}
	return s
}

// ended reports whether other code has ended the watch.
func (s *kindState) ended() bool {
	shared := s.shared.Load()
	return shared != nil && (*shared).IsStopped()
}

// noteListed delivers what the first list shows, unless it was delivered before.
func (k *keeper) noteListed(listed any) {
	now, is := objectOf(listed)
	if !is {
		return
	}
	before := k.entries.Delivered(client.ObjectKeyFromObject(now))
	switch {
	case before == nil:
		k.noteEvent(objects.Listed, listed)
	case !unchanged(before, listed):
		k.noteUpdate(before, listed)
	}
}

// catchUp delivers, after the first list, the deletion of objects that are gone, and reconciles all that are remembered.
func (k *keeper) catchUp() {
	for _, gone := range k.entries.NotListed() {
		k.noteEvent(objects.Deleted, gone)
		enqueue(k.queue, gone)
	}
	for _, key := range k.entries.Keys() {
		k.wake(key)
	}
}
