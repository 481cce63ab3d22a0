package simulation

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// editData changes a field of a child that the operator has written, such as a key of its data: the first one, in the order of their paths, that
// the API server lets change. If it lets none change, editData removes the first one that it lets remove. It returns false if there is none.
func (w *World) editData(child *unstructured.Unstructured) (edited bool, err error) {
	fields := writtenFields(child)
	for _, change := range []func(any) any{changedValue, func(any) any { return nil }} {
		for _, path := range fields {
			before, there := object.Get(child.Object, path...)
			after := change(before)
			if !there || reflect.DeepEqual(before, after) {
				continue
			}
			if edited, err := w.editField(child.DeepCopy(), path, after); edited || err != nil {
				return edited, err
			}
		}
	}
	return false, nil
}

// editField sets a field of an object; nil removes it. It returns false if the API server refuses that, or stores the same as before.
func (w *World) editField(child *unstructured.Unstructured, path object.Path, to any) (edited bool, err error) {
	before, _ := object.Get(child.Object, path...)
	generation := child.GetGeneration()
	merge, err := json.Marshal(object.With(object.Body{}, path, to))
	if err != nil {
		return false, err
	}
	err = w.User.Patch(context.Background(), child, client.RawPatch(types.MergePatchType, merge))
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	after, _ := object.Get(child.Object, path...)
	if reflect.DeepEqual(before, after) {
		return false, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.edited == nil {
		w.edited = map[types.UID]bool{}
	}
	w.edited[child.GetUID()] = child.GetGeneration() != generation
	return true, err
}

// withoutEdit takes an edit and its repair out of the generation of an object, which counts both.
func (w *World) withoutEdit(one unstructured.Unstructured) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.edited[one.GetUID()] {
		const both = 2
		one.SetGeneration(one.GetGeneration() - both)
	}
}

// changedValue returns another value of the same type for a text, a number or a truth value, and the same value for any other.
func changedValue(value any) any {
	switch value := value.(type) {
	case string:
		return value + "-edited"
	case int64:
		return value + 1
	case float64:
		return value + 1
	case bool:
		return !value
	default:
		return value
	}
}

// writtenFields returns the paths of the fields that the operator has written, outside of lists, metadata and status. They are in order.
func writtenFields(child *unstructured.Unstructured) []object.Path {
	var paths []object.Path
	for _, entry := range child.GetManagedFields() {
		if entry.Manager == user || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		fields := &fieldpath.Set{}
		if fields.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		fields.Leaves().Iterate(func(at fieldpath.Path) {
			if path := namesOf(at); path != nil && path[0] != "metadata" && path[0] != "status" {
				paths = append(paths, below(child.Object, path)...)
			}
		})
	}
	slices.SortFunc(paths, func(a, b object.Path) int { return strings.Compare(a.String(), b.String()) })
	return paths
}

// below returns the path of a value, or those of all values in a map that is written as a whole.
func below(body object.Body, path object.Path) []object.Path {
	values := object.Map(body, path...)
	if len(values) == 0 {
		return []object.Path{path}
	}
	var paths []object.Path
	for name := range values {
		paths = append(paths, below(body, append(slices.Clone(path), name))...)
	}
	return paths
}

// namesOf returns the names of the fields on a path, nil if the path leads into a list.
func namesOf(at fieldpath.Path) object.Path {
	var path object.Path
	for _, element := range at {
		if element.FieldName == nil {
			return nil
		}
		path = append(path, *element.FieldName)
	}
	return path
}
