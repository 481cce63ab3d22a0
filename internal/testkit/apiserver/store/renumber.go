package store

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Renumber gives all objects lower revisions in the order of their old ones, and ends every watch, with the error if there is one. So it is when a backup is
// restored into a new cluster.
func (s *Store) Renumber(ended error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	type stored struct {
		key      Key
		object   *unstructured.Unstructured
		revision int64
	}
	var all []stored
	for _, objects := range s.objects {
		for key, object := range maps.All(objects) {
			revision, _ := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
			all = append(all, stored{key, object, revision})
		}
	}
	slices.SortFunc(all, func(a, b stored) int { return cmp.Compare(a.revision, b.revision) })
	for i, one := range all {
		renumbered := one.object.DeepCopy()
		renumbered.SetResourceVersion(strconv.Itoa(i + 1))
		s.objects[one.key.Resource][one.key] = renumbered
	}
	s.revision = int64(len(all)) + 1
	s.history, s.compacted = nil, s.revision
	s.end(func(*Watcher) bool { return true }, ended)
}
