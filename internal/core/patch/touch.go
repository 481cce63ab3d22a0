package patch

import (
	"slices"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Touch is a change of one field: it was set or, with Gone, removed. An item of a keyed list counts as a field, named by its keys:
// the condition Ready is status.conditions.Ready.
type Touch struct {
	Path  object.Path
	Value any
	Gone  bool
	// keys are the keys of the list if the field is an item of one. list is the change of a list without keys.
	keys []string
	list *ListEdit
}

// Touches returns the fields that the edits change.
func Touches(edits []Edit) []Touch {
	var found []Touch
	for _, edit := range edits {
		if edit.List == nil || len(edit.List.Keys) == 0 {
			found = append(found, Touch{Path: edit.Path, Value: edit.Value, Gone: edit.Remove, list: edit.List})
			continue
		}
		keys := edit.List.Keys
		before, after := byName(edit.List.Before, keys), byName(edit.List.After, keys)
		var names []string
		for name := range before {
			names = append(names, name)
		}
		for name := range after {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			was, wasThere := before[name]
			is, isThere := after[name]
			if wasThere != isThere || !object.Equal(was, is) {
				found = append(found, Touch{Path: edit.Path.Child(name), Value: is, Gone: !isThere, keys: keys})
			}
		}
	}
	return found
}

// In returns the value of the field in a body, or nil if it is absent.
func (t Touch) In(body object.Body) any {
	if len(t.keys) == 0 {
		value, _ := object.Get(body, t.Path...)
		return value
	}
	last := len(t.Path) - 1
	list, _ := object.Get(body, t.Path[:last]...)
	items, _ := itemsOf(list)
	if item, found := byName(items, t.keys)[t.Path[last]]; found {
		return item
	}
	return nil
}

// Contradicts reports whether this touch undoes an earlier one of the same field, of a parent or of a child.
func (t Touch) Contradicts(earlier Touch) bool {
	switch {
	case slices.Equal(t.Path, earlier.Path) && t.list != nil && earlier.list != nil:
		return earlier.list.lostIn(t.list.After)
	case slices.Equal(t.Path, earlier.Path):
		return t.Gone != earlier.Gone || !object.Equal(t.Value, earlier.Value)
	case earlier.Path.Under(t.Path...):
		return !isMap(t.Value)
	case t.Path.Under(earlier.Path...):
		return !isMap(earlier.Value) && !earlier.Gone
	}
	return false
}

// lostIn reports whether a later list lacks an item that this change has added.
func (e *ListEdit) lostIn(later []any) bool {
	return slices.ContainsFunc(e.After, func(item any) bool {
		same := func(other any) bool { return object.Equal(item, other) }
		return !slices.ContainsFunc(e.Before, same) && !slices.ContainsFunc(later, same)
	})
}

// Enters reports whether the touch changes anything at the path, above it or below it.
func (t Touch) Enters(path object.Path) bool {
	if t.Path.Under(path...) {
		return true
	}
	return path.Under(t.Path...) && !isMap(t.Value)
}

func isMap(value any) bool {
	_, is := value.(object.Body)
	return is
}

func sorted(body object.Body) []string {
	keys := make([]string, 0, len(body))
	for key := range body {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
