package patch

import (
	"encoding/json"
	"fmt"
	"slices"
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
	base       object.Body
	operations []Operation
}

// New returns a document that applies only to the object with the uid of base. A late write must not change an object that was
// re-created under the same name.
func New(base object.Body) *Document {
	document := &Document{base: base}
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
func (d *Document) Value(path object.Path) (any, bool) { return object.Get(d.base, path...) }

// Test makes the document conditional on path still having the value that it has in the base, or still being absent. If a
// parent is absent, the condition is that the parent is still absent.
func (d *Document) Test(path object.Path) {
	for depth := 1; depth <= len(path); depth++ {
		value, found := object.Get(d.base, path[:depth]...)
		if found && depth < len(path) {
			continue
		}
		d.operations = append(d.operations, Operation{Op: "test", Path: Pointer(path[:depth]), Value: value})
		return
	}
}

// Edit adds the operations that set or remove a field. Absent parents are created, on condition that they are still absent. A
// list with keys is merged with that of the base, on condition that the list has not changed.
func (d *Document) Edit(edit Edit) {
	if len(edit.Keys) > 0 {
		current, _ := object.Get(d.base, edit.Path...)
		whole, needed := edit.settled(current)
		if !needed {
			return
		}
		d.Test(edit.Path)
		edit = whole
	}
	if edit.Remove {
		if _, found := object.Get(d.base, edit.Path...); found {
			d.operations = append(d.operations, Operation{Op: "remove", Path: Pointer(edit.Path)})
			d.base = object.Without(d.base, edit.Path)
		}
		return
	}
	for depth := 1; depth < len(edit.Path); depth++ {
		parent := edit.Path[:depth]
		if value, found := object.Get(d.base, parent...); found && value != nil {
			continue
		}
		d.Test(parent)
		d.operations = append(d.operations, Operation{Op: "add", Path: Pointer(parent), Value: object.Body{}})
		d.base = object.With(d.base, parent, object.Body{})
	}
	d.operations = append(d.operations, Operation{Op: "add", Path: Pointer(edit.Path), Value: edit.Value})
	d.base = object.With(d.base, edit.Path, edit.Value)
}

// AddFinalizer appends a finalizer and keeps all others.
func (d *Document) AddFinalizer(name string) {
	path := object.Path{"metadata", "finalizers"}
	finalizers := object.List(d.base, path...)
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
	finalizers := object.List(d.base, path...)
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
// server has them. If the guess is wrong, a test of the document fails, and the next document is made from a live read.
func Guess(body object.Body) object.Body {
	guessed := make(object.Body, len(body))
	for key, value := range body {
		if child, isMap := value.(object.Body); isMap {
			if child = Guess(child); len(child) > 0 {
				guessed[key] = child
			}
		} else if value != nil {
			guessed[key] = value
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
