package patch

import (
	"slices"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Weights of two items that can be the same one. Items with similar or more are surely the same one; the least means that only their
// places say so.
const (
	least   = 1
	similar = 50
	named   = 500
	equal   = 1000
)

// alignLimit is the largest number of pairs of items that are compared. Beyond it, only items in the same place can be the same one.
const alignLimit = 1 << 16

// link says which item of an earlier list an item was; was is -1 for none.
type link struct {
	was int
	// weak means that only the place says so. moved means that the order has changed.
	weak, moved bool
}

// alignment links the items of a list to those of an earlier list. The second slice has the index of the item for each earlier one, or -1.
type alignment struct {
	links []link
	now   []int
}

// align finds out which items of a list were which ones before the edit.
func (e *ListEdit) align(list []any) alignment {
	found := alignment{links: make([]link, len(list)), now: slices.Repeat([]int{-1}, len(e.Before))}
	for i := range found.links {
		found.links[i].was = -1
	}
	if len(e.Keys) > 0 {
		found.byKeys(e.Before, list, e.Keys)
		return found
	}
	first := 0
	for first < min(len(e.Before), len(list)) && object.Equal(e.Before[first], list[first]) {
		found.link(first, first, equal)
		first++
	}
	last, end := len(e.Before), len(list)
	for last > first && end > first && object.Equal(e.Before[last-1], list[end-1]) {
		last, end = last-1, end-1
		found.link(last, end, equal)
	}
	found.middle(e.Before[first:last], list[first:end], first)
	found.moves(e.Before, list)
	return found
}

func (a *alignment) link(was, is, weight int) {
	a.links[is] = link{was: was, weak: weight < similar}
	a.now[was] = is
}

func (a *alignment) byKeys(before, list []any, keys []string) {
	at := make(map[string]int, len(before))
	for i, item := range before {
		at[nameOf(item, keys)] = i
	}
	for i, item := range list {
		if was, known := at[nameOf(item, keys)]; known {
			a.link(was, i, named)
		}
	}
}

// middle links the items between those that are equal at both ends, so that the sum of the weights is the greatest one.
func (a *alignment) middle(before, list []any, offset int) {
	if len(before)*len(list) > alignLimit {
		for i := range min(len(before), len(list)) {
			if weight := weigh(before[i], list[i]); weight > 0 {
				a.link(offset+i, offset+i, weight)
			}
		}
		return
	}
	width := len(list) + 1
	best := make([]int, (len(before)+1)*width) // The greatest sum for the items from i and j on.
	weights := make([]int, len(best))
	for i, was := range slices.Backward(before) {
		for j, is := range slices.Backward(list) {
			at := i*width + j
			weights[at] = weigh(was, is)
			best[at] = max(best[at+1], best[at+width], weights[at]+best[at+width+1])
		}
	}
	for i, j := 0, 0; i < len(before) && j < len(list); {
		at := i*width + j
		switch {
		case weights[at] > 0 && best[at] == weights[at]+best[at+width+1]:
			a.link(offset+i, offset+j, weights[at])
			i, j = i+1, j+1
		case best[at] == best[at+width]:
			i++
		default:
			j++
		}
	}
}

// moves links items of which only the order has changed.
func (a *alignment) moves(before, list []any) {
	var left []int
	for i, now := range a.now {
		if now < 0 {
			left = append(left, i)
		}
	}
	added := a.added()
	if len(left)*len(added) > alignLimit {
		return
	}
	for _, j := range added {
		at := slices.IndexFunc(left, func(i int) bool { return weigh(before[i], list[j]) >= named })
		if at >= 0 {
			a.links[j], a.now[left[at]] = link{was: left[at], moved: true}, j
			left = slices.Delete(left, at, at+1)
		}
	}
}

// added returns the indexes of the items that were none before.
func (a *alignment) added() []int {
	var found []int
	for i, link := range a.links {
		if link.was < 0 {
			found = append(found, i)
		}
	}
	return found
}

// weigh returns how likely two items are the same one; 0 means that they are different ones.
func weigh(one, other any) int {
	if object.Equal(one, other) {
		return equal
	}
	first, isMap := one.(object.Body)
	second, too := other.(object.Body)
	if !isMap || !too {
		if _, isList := other.([]any); isMap || too {
			return 0
		} else if _, wasList := one.([]any); wasList != isList {
			return 0
		}
		return least
	}
	share := common(first, second)
	for _, name := range [...]string{"name", "key", "id", "type"} { // By convention, they name an item.
		was, had := first[name].(string)
		is, has := second[name].(string)
		switch {
		case !had || !has:
		case was == is:
			return named + share
		case share < similar:
			return 0
		default:
			return share
		}
	}
	return max(share, least)
}

// common returns the percentage of fields that are equal.
func common(one, other object.Body) int {
	all, same := len(other), 0
	for key, value := range one {
		if counterpart, found := other[key]; !found {
			all++
		} else if object.Equal(value, counterpart) {
			same++
		}
	}
	return 100 * same / max(all, 1)
}
