// Package object reads the body of a Kubernetes object: its essence, views of it and the difference of two.
// It never changes what it is given; results share memory with it.
package object

import "maps"

// Body is an object or a part of one, as decoded JSON: maps, slices, strings, bool, int64, float64 and nil.
type Body = map[string]any

// Get returns the value at path, and whether there is one. Lists are not entered.
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

// Text returns the string at path, or "" where there is none.
func Text(body Body, path ...string) string {
	value, _ := Get(body, path...)
	text, _ := value.(string)
	return text
}

// Map returns the map at path, or nil where there is none.
func Map(body Body, path ...string) Body {
	value, _ := Get(body, path...)
	child, _ := value.(Body)
	return child
}

// List returns the strings of the list at path; elements of other types are left out.
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

// Ended reports whether nothing holds an object that is being deleted: it has no finalizers, and no grace period, as that of a pod,
// runs. The API server removes such an object.
func Ended(body Body) bool {
	grace, _ := Get(body, "metadata", "deletionGracePeriodSeconds")
	return Text(body, "metadata", "deletionTimestamp") != "" && len(List(body, "metadata", "finalizers")) == 0 &&
		(grace == nil || Equal(grace, int64(0)))
}

// With returns body with value at path, copying only the maps on the way, so that body stays as it was.
// What stands in the way and is no map is replaced by one.
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

// Without returns body without what is at path, copying only the maps on the way. Parents left empty stay.
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
