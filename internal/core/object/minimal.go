package object

// Minimal returns the smallest form of a body from which restore makes the same body again. At every depth it leaves out what
// restore puts where a field is absent, such as defaults and the zero values of a Go type. Restore must fill in each place
// independently and change nothing else.
//
// Two bodies that restore has completed have equal minimal forms only if they are equal. A body also has the same minimal form
// under a restore that fills in more than another one: Minimal leaves the additional values out again.
func Minimal(body Body, restore func(Body) Body) Body {
	restored := make([]any, depth(body))
	for level := range restored {
		drawn, _ := outline(body, level).(Body)
		restored[level] = restore(drawn)
	}
	return leastMap(body, restored)
}

// depth counts nested maps. A list has the depth of its deepest item.
func depth(value any) int {
	deepest := 0
	switch value := value.(type) {
	case Body:
		for _, child := range value {
			deepest = max(deepest, depth(child))
		}
		return deepest + 1
	case []any:
		for _, item := range value {
			deepest = max(deepest, depth(item))
		}
	}
	return deepest
}

// outline returns the maps and lists of a value without its other contents, down to this many levels of maps.
func outline(value any, levels int) any {
	switch value := value.(type) {
	case Body:
		drawn := Body{}
		for key, child := range value {
			if levels > 0 && isParent(child) {
				drawn[key] = outline(child, levels-1)
			}
		}
		return drawn
	case []any:
		drawn := make([]any, len(value))
		for i, item := range value {
			drawn[i] = outline(item, levels)
		}
		return drawn
	default:
		return value // Kept in a list: an item has no name by which it could be left out.
	}
}

func isParent(value any) bool {
	switch value.(type) {
	case Body, []any:
		return true
	default:
		return false
	}
}

// least returns a value without what restore puts back into it. restored holds what is in the value's place when restore gets
// the outline down to the value, one level more, and so on.
func least(value any, restored []any) any {
	switch value := value.(type) {
	case Body:
		return leastMap(value, restored)
	case []any:
		kept := make([]any, len(value))
		for i, item := range value {
			kept[i] = least(item, itemsAt(restored, i, len(value)))
		}
		return kept
	default:
		return value
	}
}

func leastMap(body Body, restored []any) Body {
	kept := make(Body, len(body))
	back, _ := restored[0].(Body)
	for key, value := range body {
		if there, found := back[key]; !found || !Equal(there, value) {
			kept[key] = least(value, fieldsAt(restored[1:], key))
		}
	}
	return kept
}

func fieldsAt(restored []any, key string) []any {
	found := make([]any, len(restored))
	for level, value := range restored {
		if body, isMap := value.(Body); isMap {
			found[level] = body[key]
		}
	}
	return found
}

func itemsAt(restored []any, i, length int) []any {
	found := make([]any, len(restored))
	for level, value := range restored {
		if list, isList := value.([]any); isList && len(list) == length {
			found[level] = list[i]
		}
	}
	return found
}
