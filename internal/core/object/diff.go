package object

import "sort"

// Kinds of difference, in the words of Kopf §2.6.
const (
	Added   = "add"
	Changed = "change"
	Removed = "remove"
)

// Difference is one field that differs: Op is Added, Changed or Removed; Old is nil when added, New when removed.
type Difference struct {
	Op   string
	Path Path
	Old  any
	New  any
}

// Diff lists what differs between two values, sorted by path. Maps are entered, lists are compared as a whole.
// Numbers are equal by value (1 == 1.0).
func Diff(from, to Body) []Difference {
	return diffMaps(nil, from, to, nil)
}

func diffMaps(path Path, from, to Body, found []Difference) []Difference {
	for _, key := range keysOf(from, to) {
		before, had := from[key]
		after, has := to[key]
		at := path.Child(key)
		beforeMap, wasMap := before.(Body)
		afterMap, isMap := after.(Body)
		switch {
		case !had || before == nil && after != nil:
			if has && after != nil {
				found = append(found, Difference{Op: Added, Path: at, New: after})
			}
		case !has || after == nil && before != nil:
			if before != nil {
				found = append(found, Difference{Op: Removed, Path: at, Old: before})
			}
		case wasMap && isMap:
			found = diffMaps(at, beforeMap, afterMap, found)
		case !Equal(before, after):
			found = append(found, Difference{Op: Changed, Path: at, Old: before, New: after})
		}
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

// Equal compares two decoded JSON values; numbers by value whatever their Go type.
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
