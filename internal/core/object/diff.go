package object

import "sort"

// Kinds of difference. The values are those of Kopf.
const (
	Added   = "add"
	Changed = "change"
	Removed = "remove"
)

// Difference describes one field that differs. Op is Added, Changed or Removed. Old is nil if the field was added, New if it was removed.
type Difference struct {
	Op   string
	Path Path
	Old  any
	New  any
}

// Diff returns the differences between two values, sorted by path. Maps are compared field by field down to DepthLimit, lists as a whole.
// Numbers are compared by value (1 equals 1.0).
func Diff(from, to Body) []Difference {
	return diffMaps(nil, from, to, nil)
}

// DiffFields returns the differences in what a handler looks at: the named fields and everything below them or, if there are
// none, the whole essence except the status.
func DiffFields(from, to Body, fields []Path) []Difference {
	if len(fields) == 0 {
		return Diff(View(from, nil), View(to, nil))
	}
	var found []Difference
	for _, field := range fields {
		last := len(field) - 1
		one, other := Map(from, field[:last]...), Map(to, field[:last]...)
		found = diffKey(field[:last], field[last], one, other, found)
	}
	return found
}

func diffMaps(path Path, from, to Body, found []Difference) []Difference {
	for _, key := range keysOf(from, to) {
		found = diffKey(path, key, from, to, found)
	}
	return found
}

// diffKey compares one key of two maps.
func diffKey(path Path, key string, from, to Body, found []Difference) []Difference {
	before, after := from[key], to[key]
	beforeMap, wasMap := before.(Body)
	afterMap, isMap := after.(Body)
	switch {
	case before == nil && after == nil:
		return found
	case before == nil:
		return append(found, Difference{Op: Added, Path: path.Child(key), New: after})
	case after == nil:
		return append(found, Difference{Op: Removed, Path: path.Child(key), Old: before})
	case wasMap && isMap && len(path) < DepthLimit:
		return diffMaps(path.Child(key), beforeMap, afterMap, found)
	case !Equal(before, after):
		return append(found, Difference{Op: Changed, Path: path.Child(key), Old: before, New: after})
	}
	return found
}

func keysOf(one, other Body) []string {
	keys := make([]string, 0, len(one)+len(other))
	for key := range one {
		keys = append(keys, key)
	}
	for key := range other {
		if _, seen := one[key]; !seen {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	return keys
}

// Equal reports whether two decoded JSON values are equal. Numbers are compared by value, whatever their Go types.
func Equal(one, other any) bool {
	switch one := one.(type) {
	case Body:
		other, same := other.(Body)
		return same && equalMaps(one, other)
	case []any:
		other, same := other.([]any)
		return same && equalLists(one, other)
	case int64:
		switch other := other.(type) {
		case int64:
			return one == other
		case float64:
			return float64(one) == other
		}
		return false
	case float64:
		if whole, isInt := other.(int64); isInt {
			return one == float64(whole)
		}
		return one == other
	default:
		_, isMap := other.(Body)
		_, isList := other.([]any)
		return !isMap && !isList && one == other
	}
}

func equalMaps(one, other Body) bool {
	if len(one) != len(other) {
		return false
	}
	for key, value := range one {
		counterpart, found := other[key]
		if !found || !Equal(value, counterpart) {
			return false
		}
	}
	return true
}

func equalLists(one, other []any) bool {
	if len(one) != len(other) {
		return false
	}
	for i := range one {
		if !Equal(one[i], other[i]) {
			return false
		}
	}
	return true
}

// SameIntegers reports whether every integer of a value that was converted is also in the original, if the original has a value there.
func SameIntegers(original, converted any) bool {
	switch converted := converted.(type) {
	case Body:
		from, _ := original.(Body)
		for key, value := range converted {
			if before, has := from[key]; has && !SameIntegers(before, value) {
				return false
			}
		}
	case []any:
		from, _ := original.([]any)
		for i, item := range converted {
			if i < len(from) && !SameIntegers(from[i], item) {
				return false
			}
		}
	case int64:
		return Equal(original, converted)
	}
	return true
}
