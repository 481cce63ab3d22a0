package einmal

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/engine"
)

// Index declares a lookup over all objects of type T, for the handlers of any kind of the operator: the function gives the
// entries of one object, by key. T is a type as For takes it, handled or not; name it with the option GVK where its Go type does
// not tell.
//
// No handler runs before the index holds all objects that there were when the operator began. From then on it follows the
// watch, within moments: an object that changes has the entries that the function gives now; one that is deleted, also while
// the watch had a gap, or ceases to match the filters has none. An object that is being deleted has its entries until it is gone. A kind
// that is not served yet has no objects.
//
// The function looks at the object alone, gives the same entries for the same object, and must not wait for anything. An object that it fails for has no entries: until another
// attempt succeeds, or with Permanent, until it changes. RetryAfter says when to try again, else it is done with back-off. With
// OnError(Ignore) the object keeps the entries that it had. A panic is an error. Nothing of this is written anywhere.
//
// The options are GVK, the filters (Labels, Annotations, Field with a match, When, All, Any, Not, None), and those of retries
// (OnError, MaxAttempts, Timeout, Backoff), for the attempts for one version of an object. The id names the index in logs and metrics; each
// index has its own. The objects are cached in full; with metav1.PartialObjectMetadata for T, only their metadata is.
func Index[K comparable, V, T any, P interface {
	*T
	client.Object
}](op *Operator, id string, entries func(*T) (map[K]V, error), options ...Option) *Lookup[K, V] {
	found := &Lookup[K, V]{byKey: map[K]*bucket[V]{}, byObject: map[types.NamespacedName][]K{}}
	declared := &declaredIndex{relatedKind: relatedKind{
		option: "Index", goType: reflect.TypeFor[T](), empty: func() client.Object { return P(new(T)) },
	}}
	op.indexes = append(op.indexes, declared)
	reader := &Kind[T]{declared: &declaredKind{}, empty: func() client.Object { return declared.formOf(declared.named)() }}
	settings := handlerSettings{context: filterContext{goType: declared.goType, read: reader.fromBody}}
	for _, option := range options {
		if err := declared.take(option, &settings); err != nil {
			op.mistake(fmt.Errorf("index %s: %w", id, err))
		}
	}
	if len(settings.fields) > len(settings.changes) {
		op.mistake(fmt.Errorf("index %s: option Field: an index looks at the whole object; give a match to leave objects out", id))
	}
	reader.declared.kind.GVK = declared.named // Untyped objects have no other.
	declaration, err := settings.declaration(engine.Indexing, id)
	if err != nil {
		op.mistake(fmt.Errorf("index %s: %w", id, err))
	}
	settings.retries.into(&declaration)
	declared.index = engine.Index{Declaration: declaration, Remove: found.remove, Size: found.size}
	if entries != nil {
		declared.index.Compute = func(cached client.Object) (func(), error) {
			given := declared.shown(cached)
			made, err := entries(typed[T](given))
			return func() { found.enter(client.ObjectKeyFromObject(given), made) }, err
		}
	}
	return found
}

// declaredIndex is an index as it was declared.
type declaredIndex struct {
	relatedKind

	index engine.Index
}

// take takes an option.
func (d *declaredIndex) take(option Option, settings *handlerSettings) error {
	known := []string{"Labels", "Annotations", "Field", "When", "All", "Any", "Not", "None", "OnError", "MaxAttempts", "Timeout", "Backoff"}
	switch {
	case option.kind != nil:
		var named kindSettings
		err := option.kind(&named)
		d.named = named.gvk
		return err
	case option.handler != nil && slices.Contains(known, option.name):
		return option.handler(settings)
	default:
		return option.misplaced("Index")
	}
}

// checkIndexes finds mistakes in the declarations of indexes.
func (op *Operator) checkIndexes() error {
	var found []error
	ids := map[string]bool{}
	for _, declared := range op.indexes {
		where := fmt.Sprintf("index %q", declared.index.ID)
		if err := checkID(declared.index.ID); err != nil {
			found = append(found, fmt.Errorf("%s: %w", where, err))
		}
		if ids[declared.index.ID] {
			found = append(found, fmt.Errorf("%s is declared twice: logs and metrics name it, so give each its own id", where))
		}
		ids[declared.index.ID] = true
		if declared.index.Compute == nil {
			found = append(found, fmt.Errorf("%s has no function: tell which entries an object has", where))
		}
		of := declaredKind{goType: declared.goType}
		for _, field := range slices.Concat(declared.index.Fields, conditions(declared.index.Declaration)) {
			if err := of.checkField(engine.Indexing, field); err != nil {
				found = append(found, fmt.Errorf("%s: option Field: %w", where, err))
			}
		}
	}
	return errors.Join(found...)
}

// at is the index of a kind that is cached in a form.
func (d *declaredIndex) at(gvk schema.GroupVersionKind, empty func() client.Object) engine.Index {
	index := d.index
	index.Watched = engine.Watched{GVK: gvk, New: empty}
	index.Body = bodyOf(gvk)
	return index
}
