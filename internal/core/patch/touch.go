package patch

import (
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Touch is a change of one field: it was set or, with Gone, removed. An item of a keyed list counts as a field, named by its keys:
// the condition Ready is status.conditions.Ready.
type Touch struct {
	Path  object.Path
	Value any
	Gone  bool
	// keys are the keys of the list if the field is an item of one.
	keys []string
}

// Touches returns the fields that the edits change.
func Touches(edits []Edit) []Touch {
	var found []Touch
	for _, edit := range edits {
		if len(edit.Keys) == 0 {
			found = append(found, Touch{Path: edit.Path, Value: edit.Value, Gone: edit.Remove})
			continue
		}
		before, after := byName(edit.Before, edit.Keys), byName(edit.wanted(), edit.Keys)
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
				found = append(found, Touch{Path: edit.Path.Child(name), Value: is, Gone: !isThere, keys: edit.Keys})
			}
		}
	}
	return found
}

// in returns the value of the field in a body, or nil if it is absent.
func (t Touch) in(body object.Body) any {
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
	case slices.Equal(t.Path, earlier.Path):
		return t.Gone != earlier.Gone || !object.Equal(t.Value, earlier.Value)
	case earlier.Path.Under(t.Path...):
		return !isMap(t.Value)
	case t.Path.Under(earlier.Path...):
		return !isMap(earlier.Value) && !earlier.Gone
	}
	return false
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

// Departure is a field that the API server did not store as intended.
type Departure struct {
	// Field is its path, with [] for any item of a list.
	Field string
	// Dropped means that the field is absent.
	Dropped bool
	// Path is the path of the edit.
	Path object.Path
}

// Departures compares what a document with these edits intended with the object that the API server returned.
func Departures(document *Document, edits []Edit, answer object.Body) []Departure {
	var found []Departure
	for _, edit := range edits {
		meant, wanted := document.Value(edit.Path)
		if !wanted {
			continue
		}
		for _, departure := range departAt(edit.Path.String(), meant, answer, edit.Path) {
			departure.Path = edit.Path
			found = append(found, departure)
		}
	}
	return found
}

func departAt(field string, meant any, in object.Body, path object.Path) []Departure {
	kept, there := object.Get(in, path...)
	if !there && meant != nil {
		return []Departure{{Field: field, Dropped: true}}
	}
	return depart(field, meant, kept)
}

// depart finds the deepest fields in which two values differ. It ignores fields that the server added.
func depart(field string, meant, kept any) []Departure {
	if object.Equal(meant, kept) {
		return nil
	}
	var found []Departure
	if body, isMap := meant.(object.Body); isMap {
		if other, same := kept.(object.Body); same {
			for _, key := range sorted(body) {
				below := strings.ReplaceAll(field+"."+object.Path{key}.String(), ".[", "[")
				found = append(found, departAt(below, body[key], other, object.Path{key})...)
			}
			return found
		}
	}
	if list, isList := meant.([]any); isList {
		if other, same := kept.([]any); same && len(other) == len(list) {
			for i := range list {
				found = append(found, depart(field+"[]", list[i], other[i])...)
			}
			return found
		}
	}
	return []Departure{{Field: field}}
}

func sorted(body object.Body) []string {
	keys := make([]string, 0, len(body))
	for key := range body {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
