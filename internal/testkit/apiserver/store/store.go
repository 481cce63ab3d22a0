// Package store keeps objects in memory under one counter of revisions, as etcd does for an API server, and tells
// watchers of every change in order.
package store

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// ErrTooOld tells that the changes since a revision are no longer known.
var ErrTooOld = errors.New("too old resource version")

// Key names one object.
type Key struct {
	// Resource is the resource and its group, for example "widgets.example.dev".
	Resource, Namespace, Name string
}

// Change is one write. Objects in it are shared and never changed.
type Change struct {
	Type     watch.EventType
	Revision int64
	Key      Key
	// Object is the object after the write; of a deletion, the last state with the deletion's revision.
	Object *unstructured.Unstructured
	// Before is the object before the write; nil if there was none.
	Before *unstructured.Unstructured
}

// Store is the memory. The zero value is not usable: see New.
type Store struct {
	mu        sync.Mutex
	revision  int64
	compacted int64
	limit     int
	objects   map[string]map[Key]*unstructured.Unstructured
	history   []Change
	watchers  map[*Watcher]struct{}
}

// New makes an empty store that remembers at least so many changes.
func New(history int) *Store {
	return &Store{
		revision: 1,
		limit:    history,
		objects:  map[string]map[Key]*unstructured.Unstructured{},
		watchers: map[*Watcher]struct{}{},
	}
}

// Do runs a transaction: nothing else reads or writes meanwhile, so it must not wait for anything.
func (s *Store) Do(transaction func(*Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return transaction(&Tx{store: s})
}

// Compact forgets what has changed so far: a watch from an older revision is refused, and open ones end with the error.
func (s *Store) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++ // So that the newest known revision is too old as well.
	s.history, s.compacted = nil, s.revision
	s.end(func(*Watcher) bool { return true }, ErrTooOld)
}

// End ends every open watch, with the error if there is one.
func (s *Store) End(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(func(*Watcher) bool { return true }, err)
}

func (s *Store) end(which func(*Watcher) bool, err error) {
	for watcher := range s.watchers {
		if which(watcher) {
			delete(s.watchers, watcher)
			watcher.finish(err)
		}
	}
}

// Tx is the access to a store within a transaction.
type Tx struct{ store *Store }

// Revision is the revision of the last write.
func (t *Tx) Revision() int64 { return t.store.revision }

// Get returns the object, or nil. It is shared: copy it before changing it.
func (t *Tx) Get(key Key) *unstructured.Unstructured { return t.store.objects[key.Resource][key] }

// List returns the objects of a resource in the order of their keys; of all namespaces if none is given.
func (t *Tx) List(resource, namespace string) []*unstructured.Unstructured {
	return inOrder(t.store.objects[resource], namespace)
}

// ListAt lists what there was at a revision. It fails with ErrTooOld if the changes since then are no longer known.
func (t *Tx) ListAt(resource, namespace string, revision int64) ([]*unstructured.Unstructured, error) {
	s := t.store
	if revision < s.compacted {
		return nil, ErrTooOld
	}
	objects := maps.Clone(s.objects[resource])
	if objects == nil {
		objects = map[Key]*unstructured.Unstructured{}
	}
	for _, change := range slices.Backward(s.history) {
		switch {
		case change.Revision <= revision:
			return inOrder(objects, namespace), nil
		case change.Key.Resource != resource:
		case change.Before == nil:
			delete(objects, change.Key)
		default:
			objects[change.Key] = change.Before
		}
	}
	return inOrder(objects, namespace), nil
}

// inOrder sorts objects as etcd does, by namespace and name with a slash between them.
func inOrder(objects map[Key]*unstructured.Unstructured, namespace string) []*unstructured.Unstructured {
	keys := make([]Key, 0, len(objects))
	for key := range objects {
		if namespace == "" || key.Namespace == namespace {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b Key) int {
		if a.Namespace == b.Namespace {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Compare(a.Namespace+"/", b.Namespace+"/")
	})
	found := make([]*unstructured.Unstructured, len(keys))
	for i, key := range keys {
		found[i] = objects[key]
	}
	return found
}

// Resources lists the resources that there are objects of.
func (t *Tx) Resources() []string {
	return slices.Sorted(maps.Keys(t.store.objects))
}

// Put writes the object, which belongs to the store from then on, and gives it the new revision.
func (t *Tx) Put(key Key, object *unstructured.Unstructured) {
	before := t.Get(key)
	change := Change{Type: watch.Added, Key: key, Object: object, Before: before}
	if before != nil {
		change.Type = watch.Modified
	}
	objects := t.store.objects[key.Resource]
	if objects == nil {
		objects = map[Key]*unstructured.Unstructured{}
		t.store.objects[key.Resource] = objects
	}
	t.store.record(change)
	objects[key] = object
}

// Delete removes the object and returns its last state, with the revision of the deletion. Watchers read it: do not change it.
func (t *Tx) Delete(key Key) *unstructured.Unstructured {
	before := t.Get(key)
	if before == nil {
		return nil
	}
	last := before.DeepCopy()
	t.DeleteAs(key, last)
	return last
}

// DeleteAs removes an object that exists. Watchers get the given last state, which belongs to the store from then on.
func (t *Tx) DeleteAs(key Key, last *unstructured.Unstructured) {
	t.store.record(Change{Type: watch.Deleted, Key: key, Object: last, Before: t.Get(key)})
	delete(t.store.objects[key.Resource], key)
	if len(t.store.objects[key.Resource]) == 0 {
		delete(t.store.objects, key.Resource)
	}
}

func (s *Store) record(change Change) {
	s.revision++
	change.Revision = s.revision
	change.Object.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	s.history = append(s.history, change)
	if len(s.history) > 2*s.limit {
		s.compacted = s.history[len(s.history)-s.limit-1].Revision
		s.history = slices.Clone(s.history[len(s.history)-s.limit:])
	}
	for watcher := range s.watchers {
		if watcher.resource == change.Key.Resource {
			watcher.push(change)
		}
	}
}

// Watch starts to watch a resource: what has changed after the revision comes first. ErrTooOld if that is not known.
func (t *Tx) Watch(resource string, after int64) (*Watcher, error) {
	s := t.store
	if after < s.compacted {
		return nil, ErrTooOld
	}
	watcher := &Watcher{store: s, resource: resource, wake: make(chan struct{}, 1)}
	start, _ := slices.BinarySearchFunc(s.history, after+1, func(c Change, revision int64) int {
		return cmp.Compare(c.Revision, revision)
	})
	for _, change := range s.history[start:] {
		if change.Key.Resource == resource {
			watcher.push(change)
		}
	}
	s.watchers[watcher] = struct{}{}
	return watcher, nil
}

// Oldest is the oldest revision that can be watched from.
func (t *Tx) Oldest() int64 { return t.store.compacted }

// EndWatches ends the open watches of one resource.
func (t *Tx) EndWatches(resource string) {
	t.store.end(func(w *Watcher) bool { return w.resource == resource }, nil)
}
