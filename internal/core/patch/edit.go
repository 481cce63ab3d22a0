// Package patch turns the changes of handlers, the finalizer and the record into as few JSON Patch documents as possible. Each
// document is conditional on the state that it was computed from.
package patch

import (
	"fmt"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Edit sets one field or, with Remove, removes it. Maps are edited field by field, and lists item by item.
type Edit struct {
	Path   object.Path
	Value  any
	Remove bool
	// List is the change of a list. The list that the object has at the time of the write gets the same change. It is nil for a
	// list that replaces another one.
	List *ListEdit
	// By names the handler that makes the edit. It is "" for edits of the framework.
	By string
}

// Edits returns the edits that turn before into after, for the changed fields only. An added map is also edited field by field,
// since another client may be adding it at the same time. So are the labels and the annotations when a handler removes the last one
// that it has seen: Go types write no empty map.
func (l Lists) Edits(before, after object.Body) []Edit {
	var edits []Edit
	for _, difference := range object.Diff(before, after) {
		switch difference.Op {
		case object.Removed:
			edits = unset(difference, edits)
		case object.Added:
			edits = set(difference.Path, difference.New, edits)
		default:
			edits = append(edits, Edit{Path: difference.Path, Value: difference.New})
		}
	}
	for i := range edits {
		edits[i].List = l.edit(before, edits[i])
	}
	return edits
}

// unset appends the edits that remove a value. It removes labels and annotations key by key: other clients can have added keys that the
// handler has not seen, and removing the whole map would remove those keys too.
func unset(removed object.Difference, edits []Edit) []Edit {
	all, isMap := removed.Old.(object.Body)
	if shared := removed.Path.Under("metadata", "labels") || removed.Path.Under("metadata", "annotations"); !isMap || !shared {
		return append(edits, Edit{Path: removed.Path, Remove: true})
	}
	for _, key := range sorted(all) {
		edits = append(edits, Edit{Path: removed.Path.Child(key), Remove: true})
	}
	return edits
}

func set(path object.Path, value any, edits []Edit) []Edit {
	added, isMap := value.(object.Body)
	if !isMap || len(added) == 0 || len(path) > object.DepthLimit {
		return append(edits, Edit{Path: path, Value: value})
	}
	for _, key := range sorted(added) {
		edits = set(path.Child(key), added[key], edits)
	}
	return edits
}

// Apply returns body with the edits made. It does not modify body. Where the change of a list does not fit the list of body, the list
// that the edit was made for replaces it.
func Apply(body object.Body, edits []Edit) object.Body {
	for _, edit := range edits {
		made, fits := edit.in(state{seen: body, base: body})
		if !fits {
			made, _ = Edit{Path: edit.Path, Value: edit.Value, Remove: edit.Remove}.in(made)
		}
		body = made.seen
	}
	return body
}

// Allowed returns an error for edits that a handler must not make on its copy. The error names the field and the alternative.
func Allowed(edits []Edit) error {
	for _, edit := range edits {
		switch {
		case edit.Path.Under("metadata", "labels"), edit.Path.Under("metadata", "annotations"):
		case edit.Path.Under("metadata", "finalizers"):
			return fmt.Errorf("handler changed %s on its copy: declare OnDelete, which keeps a finalizer, or patch it through Client", edit.Path)
		case edit.Path.Under("metadata", "ownerReferences"):
			return fmt.Errorf("handler changed %s on its copy: use Apply for children, or patch it through Client", edit.Path)
		case edit.Path.Under("metadata"), edit.Path.Under("apiVersion"), edit.Path.Under("kind"):
			return fmt.Errorf("handler changed %s on its copy: the API server owns this field; do not change it, and give Client a deep copy", edit.Path)
		}
	}
	return nil
}

// Split separates the edits of the status from all others.
func Split(edits []Edit) (rest, status []Edit) {
	for _, edit := range edits {
		if edit.Path.Under("status") {
			status = append(status, edit)
		} else {
			rest = append(rest, edit)
		}
	}
	return rest, status
}
