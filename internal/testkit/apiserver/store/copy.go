package store

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Copy is what a store holds at a revision.
type Copy struct {
	revision int64
	objects  map[string]map[Key]*unstructured.Unstructured
}

// Copy returns a copy of the store. Objects in it are shared and never changed.
func (s *Store) Copy() *Copy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Copy{s.revision, cloned(s.objects)}
}

// Restore brings the store back to a copy. All watches end, without an error. The changes before the copy are not known any more.
func (s *Store) Restore(from *Copy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision, s.objects = from.revision, cloned(from.objects)
	s.history, s.compacted = nil, from.revision
	s.end(func(*Watcher) bool { return true }, nil)
}

func cloned(objects map[string]map[Key]*unstructured.Unstructured) map[string]map[Key]*unstructured.Unstructured {
	made := make(map[string]map[Key]*unstructured.Unstructured, len(objects))
	for resource, all := range objects {
		made[resource] = maps.Clone(all)
	}
	return made
}
