// Package object reads the body of a Kubernetes object. The essence is the part whose changes matter to handlers: the spec and similar
// fields, labels and annotations. A view is the part of the essence that one handler looks at. Functions never modify their arguments;
// results share memory with them.
package object

import "maps"

// Body is an object or a part of one as decoded JSON: maps, slices, strings, bool, int64, float64 and nil.
type Body = map[string]any

// Get returns the value at path and whether it exists. It does not descend into lists.
func Get(body Body, path ...string) (any, bool) {
	var value any = body
	for _, element := range path {
		parent, isMap := value.(Body)
		if !isMap {
			return nil, false
		}
		var found bool
		if value, found = parent[element]; !found {
			return nil, false
		}
	}
	return value, true
}

// Text returns the string at path, or "" if there is none.
func Text(body Body, path ...string) string {
	value, _ := Get(body, path...)
	text, _ := value.(string)
	return text
}

// Map returns the map at path, or nil if there is none.
func Map(body Body, path ...string) Body {
	value, _ := Get(body, path...)
	child, _ := value.(Body)
	return child
}

// List returns the strings of the list at path. It skips elements of other types.
func List(body Body, path ...string) []string {
	value, _ := Get(body, path...)
	items, _ := value.([]any)
	texts := make([]string, 0, len(items))
	for _, item := range items {
		if text, isText := item.(string); isText {
			texts = append(texts, text)
		}
	}
	return texts
}

// Ended reports whether the API server will remove an object that is being deleted: it has no finalizers, and no grace period,
// such as that of a pod, is running.
func Ended(body Body) bool {
	grace, _ := Get(body, "metadata", "deletionGracePeriodSeconds")
	return Text(body, "metadata", "deletionTimestamp") != "" && len(List(body, "metadata", "finalizers")) == 0 &&
		(grace == nil || Equal(grace, int64(0)))
}

// With returns body with value at path. It copies only the maps on the way and does not modify body. A value on the way that is
// not a map is replaced by one.
func With(body Body, path Path, value any) Body {
	if len(path) == 0 {
		return body
	}
	changed := shallow(body)
	if len(path) == 1 {
		changed[path[0]] = value
		return changed
	}
	child, _ := body[path[0]].(Body)
	changed[path[0]] = With(child, path[1:], value)
	return changed
}

// Without returns body without the value at path. It copies only the maps on the way. Parents that become empty stay.
func Without(body Body, path Path) Body {
	if _, found := Get(body, path...); !found || len(path) == 0 {
		return body
	}
	changed := shallow(body)
	if len(path) == 1 {
		delete(changed, path[0])
		return changed
	}
	child, _ := body[path[0]].(Body)
	changed[path[0]] = Without(child, path[1:])
	return changed
}

func shallow(body Body) Body {
	copied := make(Body, len(body)+1)
	maps.Copy(copied, body)
	return copied
}
