// Package patch turns what handlers changed, the finalizer and the record into the fewest JSON Patch documents, each
// conditional on what it was computed from.
package patch

import (
	"fmt"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Edit sets one field or, with Remove, takes it away. Maps are edited field by field, lists as a whole, but for those
// with Keys: they are merged, item by item, with whatever the list is when it is written.
type Edit struct {
	Path   object.Path
	Value  any
	Remove bool
	// Before is the list that an edit with Keys was made from.
	Before []any
	Keys   []string
}

// Edits is what someone changed between two bodies: only the fields touched. A map that was added is edited field by
// field too, since somebody else may be adding it at the same time.
func Edits(before, after object.Body) []Edit {
	var edits []Edit
	for _, difference := range object.Diff(before, after) {
		switch difference.Op {
		case object.Removed:
			edits = append(edits, Edit{Path: difference.Path, Remove: true})
		case object.Added:
			edits = set(difference.Path, difference.New, edits)
		default:
			edits = append(edits, Edit{Path: difference.Path, Value: difference.New})
		}
	}
	return edits
}

func set(path object.Path, value any, edits []Edit) []Edit {
	added, isMap := value.(object.Body)
	if !isMap || len(added) == 0 {
		return append(edits, Edit{Path: path, Value: value})
	}
	for _, key := range sorted(added) {
		edits = set(path.Child(key), added[key], edits)
	}
	return edits
}

// Apply returns body with the edits made; body itself stays as it was.
func Apply(body object.Body, edits []Edit) object.Body {
	for _, edit := range edits {
		if len(edit.Keys) > 0 {
			current, _ := object.Get(body, edit.Path...)
			whole, needed := edit.settled(current)
			if !needed {
				continue
			}
			edit = whole
		}
		if edit.Remove {
			body = object.Without(body, edit.Path)
		} else {
			body = object.With(body, edit.Path, edit.Value)
		}
	}
	return body
}

// Allowed refuses edits that a handler must not make on its copy, naming the field and what to use instead.
func Allowed(edits []Edit) error {
	for _, edit := range edits {
		switch {
		case edit.Path.Under("metadata", "labels"), edit.Path.Under("metadata", "annotations"):
		case edit.Path.Under("metadata", "finalizers"):
			return fmt.Errorf("%s was changed on the handler's copy: declare OnDelete, which keeps the finalizer, or patch it through Client", edit.Path)
		case edit.Path.Under("metadata", "ownerReferences"):
			return fmt.Errorf("%s was changed on the handler's copy: use Apply for children, or patch it through Client", edit.Path)
		case edit.Path.Under("metadata"), edit.Path.Under("apiVersion"), edit.Path.Under("kind"):
			return fmt.Errorf("%s was changed on the handler's copy: the API server owns it, leave it as it is, and give Client a deep copy", edit.Path)
		}
	}
	return nil
}

// Split parts the edits of the status from those of everything else.
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
