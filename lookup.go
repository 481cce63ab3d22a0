package einmal

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Lookup returns what an Index contains. Any number of handlers can use it concurrently.
type Lookup[K comparable, V any] struct {
	mu       sync.RWMutex
	byKey    map[K]*bucket[V]
	byObject map[types.NamespacedName][]K
}

// bucket holds the values of one key, by object. sorted caches them as a list; it is never modified, only replaced.
type bucket[V any] struct {
	values map[types.NamespacedName]V
	sorted []V
}

// Get returns the values of a key: one of each object that has an entry for it, sorted by the namespace and name of the
// object. The caller owns the slice. Whatever its values refer to is shared, so do not modify it.
func (l *Lookup[K, V]) Get(key K) []V {
	l.mu.RLock()
	found, has := l.byKey[key]
	if !has || found.sorted != nil {
		defer l.mu.RUnlock()
		if !has {
			return nil
		}
		return slices.Clone(found.sorted)
	}
	l.mu.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if found, has = l.byKey[key]; !has {
		return nil
	}
	found.sort()
	return slices.Clone(found.sorted)
}

// Keys returns all keys that have an entry, in no particular order.
func (l *Lookup[K, V]) Keys() []K {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Collect(maps.Keys(l.byKey))
}

func (b *bucket[V]) sort() {
	names := slices.SortedFunc(maps.Keys(b.values), func(one, other types.NamespacedName) int {
		return cmp.Or(cmp.Compare(one.Namespace, other.Namespace), cmp.Compare(one.Name, other.Name))
	})
	b.sorted = make([]V, len(names))
	for i, name := range names {
		b.sorted[i] = b.values[name]
	}
}

// size returns how many objects have entries.
func (l *Lookup[K, V]) size() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.byObject)
}

// enter replaces the entries of an object. The replacement is atomic.
func (l *Lookup[K, V]) enter(object types.NamespacedName, entries map[K]V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeLocked(object)
	if len(entries) == 0 {
		return
	}
	keys := make([]K, 0, len(entries))
	for key, value := range entries {
		keys = append(keys, key)
		if l.byKey[key] == nil {
			l.byKey[key] = &bucket[V]{values: map[types.NamespacedName]V{}}
		}
		l.byKey[key].values[object], l.byKey[key].sorted = value, nil
	}
	l.byObject[object] = keys
}

// remove removes the entries of an object.
func (l *Lookup[K, V]) remove(object types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeLocked(object)
}

func (l *Lookup[K, V]) removeLocked(object types.NamespacedName) {
	for _, key := range l.byObject[object] {
		found := l.byKey[key]
		delete(found.values, object)
		found.sorted = nil
		if len(found.values) == 0 {
			delete(l.byKey, key)
		}
	}
	delete(l.byObject, object)
}
