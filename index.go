package einmal

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/register"
)

// Index declares an in-memory lookup over all objects of type T. The function returns the entries of one object, by
// key. Handlers of all kinds of the operator can use the lookup. T is a type as for For, handled or not; add the option
// GVK if its Go type does not say its kind. The id names the index in logs and metrics, and must be unique among
// indexes.
//
// No handler runs before the index contains all objects that existed when the operator started. From then on it follows
// the watch:
//
//   - An object that changes has the entries that the function returns now.
//   - An object that is being deleted keeps its entries until it is gone.
//   - An object that is gone, or does not match the filters any more, has no entries. This includes deletions in a gap
//     of the watch.
//   - A kind that is not served yet has no objects.
//
// The function must depend on the object alone, return the same entries for the same object, and not block. If it
// fails, the object has no entries until another attempt succeeds; after Permanent, until the object changes.
// RetryAfter sets the time of the next attempt; other errors are retried with backoff. A panic is an error. With
// OnError(PolicyIgnore) the object keeps its previous entries. Nothing is stored in the cluster.
//
// The options are GVK, every Filter, and every RetryOption, which limits the attempts for one version of an object.
// Whole objects are cached. If T is metav1.PartialObjectMetadata, only their metadata is.
func Index[K comparable, V, T any, P interface {
	*T
	client.Object
}](op *Operator, id string, entries func(*T) (map[K]V, error), options ...IndexOption) *Lookup[K, V] {
	found := &Lookup[K, V]{byKey: map[K]*bucket[V]{}, byObject: map[types.NamespacedName][]K{}}
	made := &declaredIndex{relatedKind: relatedKind{
		option: "Index", goType: reflect.TypeFor[T](), empty: func() client.Object { return P(new(T)) },
	}}
	op.indexes = append(op.indexes, made)
	reader := &Kind[T]{declared: &declaredKind{}, empty: func() client.Object { return made.formOf(made.named)() }}
	settings := handlerSettings{context: filterContext{goType: made.goType, read: reader.fromBody}}
	known, err := optionsOf(options)
	if err != nil {
		op.mistake(fmt.Errorf("index %s: %w", id, err))
	}
	for _, one := range known {
		if err := made.take(one, &settings); err != nil {
			op.mistake(fmt.Errorf("index %s: %w", id, err))
		}
	}
	reader.declared.kind.GVK = made.named // Only untyped objects need it.
	of, err := settings.declaration(declaration.Indexing, id)
	if err != nil {
		op.mistake(fmt.Errorf("index %s: %w", id, err))
	}
	settings.retries.into(&of)
	made.index = declaration.Index{Declaration: of, Remove: found.remove, Size: found.size}
	if entries != nil {
		made.index.Compute = func(cached client.Object) (func(), error) {
			given := made.shown(cached)
			made, err := entries(typed[T](given))
			return func() { found.enter(client.ObjectKeyFromObject(given), made) }, err
		}
	}
	return found
}

// declaredIndex is an index as it was declared.
type declaredIndex struct {
	relatedKind

	index declaration.Index
}

// take applies one option.
func (d *declaredIndex) take(one option, settings *handlerSettings) error {
	if one.kind == nil {
		return one.handler(settings)
	}
	var named kindSettings
	err := one.kind(&named)
	d.named = named.gvk
	return err
}

// checkIndexes returns errors in the declarations of indexes.
func (op *Operator) checkIndexes() error {
	var found []error
	ids := map[string]bool{}
	for _, one := range op.indexes {
		where := fmt.Sprintf("index %q", one.index.ID)
		if err := register.CheckID(one.index.ID); err != nil {
			found = append(found, fmt.Errorf("%s: %w", where, err))
		}
		if ids[one.index.ID] {
			found = append(found, fmt.Errorf("%s is declared twice: give each index its own id, since logs and metrics name it", where))
		}
		ids[one.index.ID] = true
		if one.index.Compute == nil {
			found = append(found, fmt.Errorf("%s has no function: give it one that returns the entries of an object", where))
		}
		for _, field := range slices.Concat(one.index.Fields, register.Conditions(one.index.Declaration)) {
			if err := register.CheckField(one.goType, declaration.Indexing, field); err != nil {
				found = append(found, fmt.Errorf("%s: %w", where, err))
			}
		}
	}
	return errors.Join(found...)
}

// at returns the index for a kind, with the form in which the kind is cached.
func (d *declaredIndex) at(gvk schema.GroupVersionKind, empty func() client.Object) declaration.Index {
	index := d.index
	index.Watched = declaration.Watched{GVK: gvk, New: empty}
	index.Body = bodyOf(gvk)
	return index
}

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
