package patch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// List is a list of maps in which each item is identified by the values of Keys, such as the type of a condition.
type List struct {
	Path object.Path
	Keys []string
}

// Lists are the keyed lists of one kind.
type Lists []List

// Keyed marks the edits of keyed lists, so that they are merged by key. Before is what the edits were made from. A list with two
// items of the same key cannot be merged and is replaced as a whole.
func (l Lists) Keyed(before object.Body, edits []Edit) []Edit {
	marked := slices.Clone(edits)
	for i, edit := range marked {
		keys := l.keysOf(edit.Path)
		was, _ := object.Get(before, edit.Path...)
		old, wasList := itemsOf(was)
		wanted, isList := itemsOf(edit.Value)
		if len(keys) > 0 && wasList && isList && distinct(old, keys) && distinct(wanted, keys) {
			marked[i].Before, marked[i].Keys = old, keys
		}
	}
	return marked
}

func (l Lists) keysOf(path object.Path) []string {
	for _, list := range l {
		if slices.Equal(list.Path, path) {
			return list.Keys
		}
	}
	return nil
}

// itemsOf returns the items of a list and whether the value is one. An absent list counts as an empty one.
func itemsOf(value any) ([]any, bool) {
	items, isList := value.([]any)
	return items, isList || value == nil
}

func distinct(items []any, keys []string) bool {
	seen := make(map[string]bool, len(items))
	for _, item := range items {
		name := nameOf(item, keys)
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

// nameOf returns the identity of an item within its list, or "" if it has none of the keys.
func nameOf(item any, keys []string) string {
	body, isMap := item.(object.Body)
	if !isMap {
		return ""
	}
	values := make([]string, 0, len(keys))
	known := false
	for _, key := range keys {
		value, found := body[key]
		if known = known || found; !found {
			value = ""
		}
		values = append(values, fmt.Sprint(value))
	}
	if !known {
		return ""
	}
	return strings.Join(values, "/")
}

func byName(items []any, keys []string) map[string]object.Body {
	found := make(map[string]object.Body, len(items))
	for _, item := range items {
		if body, isMap := item.(object.Body); isMap {
			found[nameOf(item, keys)] = body
		}
	}
	return found
}

// wanted returns the list as a keyed edit wants it to be.
func (e Edit) wanted() []any {
	items, _ := e.Value.([]any)
	return items
}

// onto applies the changes of a keyed edit to the newest list: items that the edit added, changed or removed. In a changed item
// only the changed fields are written. All other items stay as they are.
func (e Edit) onto(newest []any) []any {
	before, after := byName(e.Before, e.Keys), byName(e.wanted(), e.Keys)
	merged := make([]any, 0, len(newest)+len(after))
	present := map[string]bool{}
	for _, item := range newest {
		name := nameOf(item, e.Keys)
		body, isMap := item.(object.Body)
		was, known := before[name]
		wanted, kept := after[name]
		present[name] = true
		switch {
		case !isMap || !known && !kept:
			merged = append(merged, item)
		case !kept:
		case known:
			merged = append(merged, Apply(body, Edits(was, wanted)))
		default:
			merged = append(merged, wanted)
		}
	}
	for _, item := range e.wanted() {
		name := nameOf(item, e.Keys)
		was, known := before[name]
		untouched := known && object.Equal(was, after[name]) // Another client has removed it.
		if !present[name] && !untouched {
			merged = append(merged, item)
		}
	}
	return merged
}

// settled turns a keyed edit into an edit of the whole list, given the newest list. It returns false if there is nothing to do.
// A value that is not a list is replaced.
func (e Edit) settled(newest any) (Edit, bool) {
	list, isList := itemsOf(newest)
	merged := e.onto(list)
	whole := Edit{Path: e.Path, Value: merged}
	if e.Remove && len(merged) == 0 {
		whole = Edit{Path: e.Path, Remove: true}
	}
	switch {
	case !isList:
		return whole, true
	case newest == nil && len(merged) == 0: // An empty list in place of an absent one was set on purpose.
		return whole, !e.Remove && len(e.Before) == 0
	default:
		return whole, whole.Remove || !object.Equal(list, merged)
	}
}
