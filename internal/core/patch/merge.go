package patch

import (
	"fmt"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// state is an object in two forms: seen is how the Go type of the handlers writes it, and base is how the API server has it, with fields that
// the Go type does not know. Changes are found in seen and made in both.
type state struct{ seen, base object.Body }

// lists are both forms of a list.
type lists struct{ seen, base []any }

// item is one of a merged list, in both forms. From is its index in the list that was merged with, or -1 if it is not there.
type item struct {
	seen, base any
	from       int
	changed    bool
}

// in makes the edit. It returns false if the change of a list does not fit the list of the object, because another client has changed the
// same item; the object is as it was then.
func (e Edit) in(s state) (state, bool) {
	if e.List == nil {
		return s.with(e), true
	}
	made, fits := e.mergedInto(s)
	if !fits || !made.needed {
		return s, fits
	}
	return s.withList(e.Path, made), true
}

// with makes an edit that changes no list.
func (s state) with(e Edit) state {
	if e.Remove {
		return state{seen: object.Without(s.seen, e.Path), base: object.Without(s.base, e.Path)}
	}
	return state{seen: object.With(s.seen, e.Path, e.Value), base: object.With(s.base, e.Path, withoutNulls(e.Value))}
}

func (s state) withList(path object.Path, made merged) state {
	if made.remove {
		return s.with(Edit{Path: path, Remove: true})
	}
	seen, base := made.lists()
	return state{seen: object.With(s.seen, path, seen), base: object.With(s.base, path, base)}
}

// merged is a list with the change of an edit. It is not needed if nothing is to be written. Remove means that the field is removed.
type merged struct {
	items          []item
	needed, remove bool
}

func (m merged) lists() (seen, base []any) {
	seen, base = make([]any, len(m.items)), make([]any, len(m.items))
	for i, item := range m.items {
		seen[i], base[i] = item.seen, item.base
	}
	return seen, base
}

// mergedInto makes the change in the list of an object. A value that is not a list is replaced. It returns false if the change does not fit.
func (e Edit) mergedInto(s state) (merged, bool) {
	seen, _ := object.Get(s.seen, e.Path...)
	base, _ := object.Get(s.base, e.Path...)
	newest := lists{}
	var seenIsList, baseIsList bool
	newest.seen, seenIsList = itemsOf(seen)
	newest.base, baseIsList = itemsOf(base)
	if !seenIsList || !baseIsList {
		return merged{items: fresh(e.List.After), needed: true, remove: e.Remove}, true
	}
	items, fits := e.List.onto(newest)
	made := merged{items: items, remove: e.Remove && len(items) == 0}
	if base == nil && len(items) == 0 {
		made.needed = !e.Remove && len(e.List.Before) == 0 // An empty list in place of an absent one was set on purpose.
	} else {
		_, written := made.lists()
		made.needed = made.remove || !object.Equal(newest.base, written)
	}
	return made, fits
}

// fresh are items that no other client has.
func fresh(list []any) []item {
	items := make([]item, len(list))
	for i, one := range list {
		items[i] = newItem(one)
	}
	return items
}

func newItem(one any) item { return item{seen: one, base: withoutNulls(one), from: -1} }

// withoutNulls returns a value without fields that are null. Go types write them for what is not set, and schemas reject them.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case object.Body:
		kept := make(object.Body, len(value))
		for key, field := range value {
			if field != nil {
				kept[key] = withoutNulls(field)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, one := range value {
			kept[i] = withoutNulls(one)
		}
		return kept
	default:
		return value
	}
}

// onto makes the change in a list that other clients may have changed since. Their items stay, and items that the edit does not change stay as
// the API server has them. In a changed item only the changed fields are written. It returns false if another client has changed
// or removed an item that the edit changes, or has changed one that it removes; in a list with keys the edit prevails.
func (e *ListEdit) onto(newest lists) ([]item, bool) {
	if len(newest.seen) != len(newest.base) { // The Go type has a decoder of its own.
		return fresh(e.After), object.Equal(newest.seen, e.Before)
	}
	m := merging{edit: e, newest: newest, ours: e.align(e.After), theirs: e.align(newest.seen)}
	m.findTwins()
	added := m.added()
	items := make([]item, 0, len(newest.seen)+len(e.After))
	pending := added[-1]
	for k := range newest.seen {
		_, twin := m.twins[k]
		anchor := twin || m.theirs.links[k].was >= 0
		if anchor {
			items = append(items, pending...)
			pending = added[k]
		}
		if one, kept := m.kept(k); kept {
			items = append(items, one)
		}
	}
	return append(items, pending...), !m.failed
}

// merging is one merge of a list. Indexes: i of Before, j of After, k of the newest list.
type merging struct {
	edit         *ListEdit
	newest       lists
	ours, theirs alignment
	// twins are the items that the edit and another client have both added: the index in After for each one of the newest list.
	twins  map[int]int
	failed bool
}

func (m *merging) findTwins() {
	m.twins = map[int]int{}
	mine := map[string][]int{}
	for _, j := range m.ours.added() {
		name := m.identity(m.edit.After[j])
		mine[name] = append(mine[name], j)
	}
	for _, k := range m.theirs.added() {
		name := m.identity(m.newest.seen[k])
		if same := mine[name]; len(same) > 0 {
			m.twins[k], mine[name] = same[0], same[1:]
		}
	}
}

// identity tells items apart: by their keys, or by all that they contain.
func (m *merging) identity(one any) string {
	if len(m.edit.Keys) > 0 {
		return nameOf(one, m.edit.Keys)
	}
	return fmt.Sprintf("%#v", one) // It sorts the keys of maps and quotes texts.
}

// kept returns what an item of the newest list becomes. It returns false for one that is removed, or has another place.
func (m *merging) kept(k int) (item, bool) {
	as := item{seen: m.newest.seen[k], base: m.newest.base[k], from: k}
	i := m.theirs.links[k].was
	if i < 0 {
		if j, twin := m.twins[k]; twin {
			return m.edited(as, object.Body{}, m.edit.After[j]), true
		}
		return as, true
	}
	j := m.ours.now[i]
	switch {
	case j >= 0 && m.ours.links[j].moved:
		return item{}, false
	case j >= 0:
		return m.changed(k, j), true
	}
	m.failed = m.failed || len(m.edit.Keys) == 0 && !object.Equal(as.seen, m.edit.Before[i])
	return item{}, false
}

// added returns the items that the edit adds or moves, by the index of the item that they follow; -1 is the start of the list.
func (m *merging) added() map[int][]item {
	found, anchor := map[int][]item{}, -1
	twin := make(map[int]int, len(m.twins))
	for k, j := range m.twins {
		twin[j] = k
	}
	for j, one := range m.edit.After {
		i := m.ours.links[j].was
		k, isTwin := twin[j]
		switch {
		case isTwin:
			anchor = k
		case i < 0:
			found[anchor] = append(found[anchor], newItem(one))
		case m.theirs.now[i] < 0 && object.Equal(m.edit.Before[i], one): // Another client has removed it.
		case m.theirs.now[i] < 0 && len(m.edit.Keys) > 0:
			found[anchor] = append(found[anchor], newItem(one))
		case m.theirs.now[i] < 0:
			m.failed = true
		case m.ours.links[j].moved:
			moved := m.changed(m.theirs.now[i], j)
			moved.from = -1
			found[anchor] = append(found[anchor], moved)
		default:
			anchor = m.theirs.now[i]
		}
	}
	return found
}

// changed returns the item with index k of the newest list with the changes that the edit makes in it.
func (m *merging) changed(k, j int) item {
	theirs, ours := m.theirs.links[k], m.ours.links[j]
	as := item{seen: m.newest.seen[k], base: m.newest.base[k], from: k}
	was, is := m.edit.Before[ours.was], m.edit.After[j]
	uncertain := (theirs.weak || ours.weak) && !object.Equal(as.seen, was) && !object.Equal(as.seen, is)
	if uncertain && !object.Equal(was, is) {
		m.failed = true
		return as
	}
	return m.edited(as, was, is)
}

// edited returns an item with the changes from was to is.
func (m *merging) edited(as item, was, is any) item {
	if object.Equal(was, is) || object.Equal(as.seen, is) {
		return as
	}
	same := object.Equal(as.seen, was)
	inner, fits := m.inner(as, was, is)
	m.failed = m.failed || !fits
	as.changed = true
	if as.seen, as.base = inner.seen, inner.base; same {
		as.seen = is
	}
	return as
}

// inner makes the changes within an item. One that is neither a map nor a list is replaced.
func (m *merging) inner(as item, was, is any) (item, bool) {
	const field = "item"
	holder := func(value any) object.Body { return object.Body{field: value} }
	s, fits := state{seen: holder(as.seen), base: holder(as.base)}, true
	inner := make(Lists, len(m.edit.Inner))
	for at, list := range m.edit.Inner {
		inner[at] = List{Path: append(object.Path{field}, list.Path...), Keys: list.Keys}
	}
	for _, edit := range inner.Edits(holder(was), holder(is)) {
		made, fit := edit.in(s)
		s, fits = made, fits && fit
	}
	return item{seen: s.seen[field], base: s.base[field]}, fits
}
