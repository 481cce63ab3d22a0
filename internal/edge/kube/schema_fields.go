package kube

import (
	"maps"
	"slices"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// lists returns the lists with keys that can be reached through fields and items of lists, in the order of their names.
func (p property) lists(at object.Path) patch.Lists {
	var found patch.Lists
	if p.ListType == "map" && len(p.ListKeys) > 0 {
		found = append(found, patch.List{Path: at, Keys: p.ListKeys})
	}
	if p.Items != nil {
		found = append(found, p.Items.lists(at.Child(patch.Items))...)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		found = append(found, p.Properties[name].lists(at.Child(name))...)
	}
	return found
}

// conventional adds the conditions: their key is the type, even if the schema does not say so.
func conventional(known patch.Lists) patch.Lists {
	conditions := patch.List{Path: object.Path{"status", "conditions"}, Keys: []string{"type"}}
	for _, list := range known {
		if slices.Equal(list.Path, conditions.Path) {
			return known
		}
	}
	return append(known, conditions)
}
