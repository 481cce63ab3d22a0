package object

// Minimal is the least of a body from which restore makes the same body again: it leaves out, at all depths, what restore
// puts where a body leaves something out, as defaults and the zero values of a Go type. Restore must fill in each place
// for itself, and change nothing else.
//
// Two bodies as restore makes them have equal minimal forms only if they are equal. And a body has the same minimal form
// under two restores of which one puts back more: what is new in it is left out again.
func Minimal(body Body, restore func(Body) Body) Body {
	restored := make([]any, depth(body))
	for level := range restored {
		drawn, _ := outline(body, level).(Body)
		restored[level] = restore(drawn)
	}
	return leastMap(body, restored)
}

// depth counts the maps that lie in each other; a list lies at the depth of its items.
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

// outline is a value with nothing in it but maps and lists, so many levels of them.
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
		return value // In a list: it has no name by which it could be left out.
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

// least is a value without what is put back into it. Restored is what stands in its place when restore is given the
// outline down to the value, a level more, and so on.
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
