package patch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Operation is one step of a JSON Patch (RFC 6902).
type Operation struct {
	Op    string
	Path  string
	Value any
}

// MarshalJSON encodes the operation. A removal has no value; a test for absence has null.
func (o Operation) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{o.Op, o.Path})
	}
	return json.Marshal(struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}{o.Op, o.Path, o.Value})
}

// Document collects the operations of one patch request against a known state of an object.
type Document struct {
	now        state
	operations []Operation
	contested  object.Path
}

// New returns a document that applies only to the object with the uid of base. A late write must not change an object that was
// re-created under the same name.
func New(base object.Body) *Document { return Seen(base, base) }

// Seen is like New, for an object of which handlers see another form, the one that their Go type writes. Both forms of a list have the
// same number of items.
func Seen(base, seen object.Body) *Document {
	document := &Document{now: state{seen: seen, base: base}}
	document.Test(object.Path{"metadata", "uid"}) // mutant: uid-not-tested
	return document
}

// Empty reports whether the document changes nothing.
func (d *Document) Empty() bool {
	return !slices.ContainsFunc(d.operations, func(o Operation) bool { return o.Op != "test" })
}

// Operations returns the operations in order.
func (d *Document) Operations() []Operation { return d.operations }

// Value returns the value at path as it is after the operations added so far.
func (d *Document) Value(path object.Path) (any, bool) { return object.Get(d.now.base, path...) }

// Contested returns the first list that could not be edited, because another client has changed the same item, or nil.
func (d *Document) Contested() object.Path { return d.contested }

// Test makes the document conditional on path still having the value that it has in the base, or still being absent. If a
// parent is absent, the condition is that the parent is still absent.
func (d *Document) Test(path object.Path) {
	for depth := 1; depth <= len(path); depth++ {
		value, found := object.Get(d.now.base, path[:depth]...)
		if found && depth < len(path) {
			continue
		}
		d.operations = append(d.operations, Operation{Op: "test", Path: Pointer(path[:depth]), Value: value})
		return
	}
}

// Edit adds the operations that set or remove a field. Absent parents are created, on condition that they are still absent. A change of a list
// is made in the list of the base, on condition that this one has not changed since. An edit that does not fit makes the document contested.
func (d *Document) Edit(edit Edit) {
	if edit.List == nil {
		d.replace(edit)
		return
	}
	made, fits := edit.mergedInto(d.now)
	if !fits && d.contested == nil {
		d.contested = edit.Path
	}
	if !fits || !made.needed {
		return
	}
	d.Test(edit.Path)
	after := d.now.withList(edit.Path, made)
	value, _ := object.Get(d.now.base, edit.Path...)
	before, isList := value.([]any)
	if operations := made.operations(edit.Path, before); isList && !made.remove && len(operations) <= (len(before)+1)/2 {
		d.operations = append(d.operations, operations...)
	} else {
		_, list := made.lists()
		d.replace(Edit{Path: edit.Path, Value: list, Remove: made.remove})
	}
	d.now = after
}

func (d *Document) replace(edit Edit) {
	if edit.Remove {
		if _, found := object.Get(d.now.base, edit.Path...); found {
			d.operations = append(d.operations, Operation{Op: "remove", Path: Pointer(edit.Path)})
		}
		d.now = d.now.with(edit)
		return
	}
	for depth := 1; depth < len(edit.Path); depth++ {
		parent := edit.Path[:depth]
		if value, found := object.Get(d.now.base, parent...); found && value != nil {
			continue
		}
		d.Test(parent)
		d.operations = append(d.operations, Operation{Op: "add", Path: Pointer(parent), Value: object.Body{}})
		d.now.base = object.With(d.now.base, parent, object.Body{})
	}
	d.now = d.now.with(edit)
	written, _ := object.Get(d.now.base, edit.Path...)
	d.operations = append(d.operations, Operation{Op: "add", Path: Pointer(edit.Path), Value: written})
}

// operations turn the list that was merged with into the merged one.
func (m merged) operations(path object.Path, before []any) []Operation {
	var found []Operation
	at := func(index int) string { return Pointer(path.Child(strconv.Itoa(index))) }
	kept := make(map[int]bool, len(m.items))
	for _, item := range m.items {
		kept[item.from] = true
	}
	for index := range slices.Backward(before) {
		if !kept[index] {
			found = append(found, Operation{Op: "remove", Path: at(index)})
		}
	}
	for index, item := range m.items {
		switch {
		case item.from < 0:
			found = append(found, Operation{Op: "add", Path: at(index), Value: item.base})
		case item.changed:
			found = append(found, Operation{Op: "replace", Path: at(index), Value: item.base})
		}
	}
	return found
}

// AddFinalizer appends a finalizer and keeps all others.
func (d *Document) AddFinalizer(name string) {
	path := object.Path{"metadata", "finalizers"}
	finalizers := object.List(d.now.base, path...)
	switch {
	case slices.Contains(finalizers, name):
	case len(finalizers) == 0:
		d.Test(path)
		d.operations = append(d.operations, Operation{Op: "add", Path: Pointer(path), Value: []string{name}})
	default:
		d.operations = append(d.operations, Operation{Op: "add", Path: Pointer(path.Child("-")), Value: name})
	}
}

// RemoveFinalizer removes a finalizer, on condition that it is still at the same position.
func (d *Document) RemoveFinalizer(name string) {
	path := object.Path{"metadata", "finalizers"}
	finalizers := object.List(d.now.base, path...)
	for i, finalizer := range slices.Backward(finalizers) {
		if finalizer != name {
			continue
		}
		at := Pointer(path.Child(fmt.Sprint(i)))
		d.operations = append(d.operations,
			Operation{Op: "test", Path: at, Value: name}, Operation{Op: "remove", Path: at})
	}
}

// Guess removes empty maps and nulls from a body that was read through a Go type, which writes them whether or not the API
// server has them. Items of lists stay. If the guess is wrong, a test of the document fails, and the next document is made from a live read.
func Guess(body object.Body) object.Body {
	guessed := make(object.Body, len(body))
	for key, value := range body {
		if child, isMap := value.(object.Body); isMap {
			if child = Guess(child); len(child) > 0 {
				guessed[key] = child
			}
		} else if value != nil {
			guessed[key] = guessItems(value)
		}
	}
	return guessed
}

func guessItems(value any) any {
	list, isList := value.([]any)
	if !isList {
		return value
	}
	guessed := make([]any, len(list))
	for i, item := range list {
		if body, isMap := item.(object.Body); isMap {
			guessed[i] = Guess(body)
		} else {
			guessed[i] = guessItems(item)
		}
	}
	return guessed
}

// Pointer returns the path as a JSON Pointer (RFC 6901).
func Pointer(path object.Path) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var text strings.Builder
	for _, element := range path {
		text.WriteString("/" + escape.Replace(element))
	}
	return text.String()
}
