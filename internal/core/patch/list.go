package patch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Items stands for all items of a list in the path of a list that is inside of them.
const Items = "*"

// List is a list of maps in which each item is identified by the values of Keys, such as the type of a condition.
type List struct {
	Path object.Path
	Keys []string
}

// Lists are the lists with keys of one kind, or of the items of a list.
type Lists []List

// ListEdit is a change of a list: what it was, and what it became.
type ListEdit struct {
	Before, After []any
	// Keys identify the items. It is empty for a list without keys, or with two items of the same key.
	Keys []string
	// Inner are the lists with keys that the items have.
	Inner Lists
}

// edit returns the change of a list that an edit makes, or nil if it changes no list.
func (l Lists) edit(before object.Body, edit Edit) *ListEdit {
	was, _ := object.Get(before, edit.Path...)
	old, wasList := itemsOf(was)
	wanted, isList := itemsOf(edit.Value)
	if !wasList || !isList || was == nil && edit.Value == nil {
		return nil
	}
	found := &ListEdit{Before: old, After: wanted, Inner: l.below(edit.Path)}
	if keys := l.keysOf(edit.Path); len(keys) > 0 && distinct(old, keys) && distinct(wanted, keys) {
		found.Keys = keys
	}
	return found
}

func (l Lists) keysOf(path object.Path) []string {
	for _, list := range l {
		if slices.Equal(list.Path, path) {
			return list.Keys
		}
	}
	return nil
}

// below returns the lists in the items of a list. Their paths begin in the item.
func (l Lists) below(path object.Path) Lists {
	var found Lists
	items := path.Child(Items)
	for _, list := range l {
		if len(list.Path) > len(items) && list.Path.Under(items...) {
			found = append(found, List{Path: list.Path[len(items):], Keys: list.Keys})
		}
	}
	return found
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
