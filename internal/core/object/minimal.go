package object

import "slices"

// DepthLimit is how deep Diff and Minimal look into nested maps: they treat a map that is nested deeper as one value. Their cost would
// otherwise grow with the square of the depth, and users decide how deep the maps in free-form fields are. It is far deeper than any
// schema of the Kubernetes API.
const DepthLimit = 64

// Minimal returns the smallest form of a body from which restore makes the same body again. At every depth up to DepthLimit it leaves
// out what restore puts where a field is absent, such as defaults and the zero values of a Go type. Restore must fill in each place
// independently and change nothing else.
//
// Two bodies that restore has completed have equal minimal forms only if they are equal. A body also has the same minimal form
// under a restore that fills in more than another one: Minimal leaves the additional values out again.
//
// Minimal goes down level by level, so that only one restored outline is in memory at a time.
func Minimal(body Body, restore func(Body) Body) Body {
	for level := range DepthLimit {
		drawn, reached := outline(body, level)
		if !reached {
			break
		}
		drawnMap, _ := drawn.(Body)
		body, _ = reduce(body, drawn, restore(drawnMap), level).(Body)
	}
	return body
}

// outline returns the maps and lists that lead to the maps at a level, without any other contents. Level 0 is the value itself. It
// reports whether there is a map at that level. A list does not count as a level.
func outline(value any, level int) (drawn any, reached bool) {
	switch value := value.(type) {
	case Body:
		if level == 0 {
			return Body{}, true
		}
		return outlineMap(value, level-1)
	case []any:
		return outlineList(value, level)
	default:
		return nil, false
	}
}

func outlineMap(fields Body, level int) (drawn any, reached bool) {
	var found Body
	for key, child := range fields {
		if below, is := outline(child, level); is {
			if found == nil {
				found = Body{}
			}
			found[key] = below
		}
	}
	return found, found != nil
}

func outlineList(items []any, level int) (drawn any, reached bool) {
	var found []any
	for i, item := range items {
		if below, is := outline(item, level); is {
			if found == nil {
				found = hollow(items)
			}
			found[i] = below
		}
	}
	return found, found != nil
}

// hollow returns a list of the same length. Maps and lists in it are empty. Other items stay: they have no name by which they could be
// left out.
func hollow(list []any) []any {
	items := make([]any, len(list))
	for i, item := range list {
		switch item.(type) {
		case Body:
			items[i] = Body{}
		case []any:
			items[i] = []any{}
		default:
			items[i] = item
		}
	}
	return items
}

// reduce returns a value without what restore puts into its maps at a level. Drawn is the outline that leads to them, and restored is
// what restore makes of it.
func reduce(value, drawn, restored any, level int) any {
	switch value := value.(type) {
	case Body:
		back, _ := restored.(Body)
		if level == 0 {
			return withoutRestored(value, back)
		}
		ways, _ := drawn.(Body)
		kept := shallow(value)
		for key, way := range ways {
			kept[key] = reduce(value[key], way, back[key], level-1)
		}
		return kept
	case []any:
		ways, _ := drawn.([]any)
		if len(ways) != len(value) { // No map at the level is in this list.
			return value
		}
		back, _ := restored.([]any)
		if len(back) != len(value) {
			back = make([]any, len(value))
		}
		kept := slices.Clone(value)
		for i, way := range ways {
			if isParent(way) {
				kept[i] = reduce(value[i], way, back[i], level)
			}
		}
		return kept
	default:
		return value
	}
}

// withoutRestored returns a map without the values that restore has put there too.
func withoutRestored(body, restored Body) Body {
	kept := make(Body, len(body))
	for key, value := range body {
		if there, found := restored[key]; !found || !Equal(there, value) {
			kept[key] = value
		}
	}
	return kept
}

func isParent(value any) bool {
	switch value.(type) {
	case Body, []any:
		return true
	default:
		return false
	}
}
