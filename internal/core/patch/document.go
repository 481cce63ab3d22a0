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

// MarshalJSON writes the operation; only a removal has no value, and a test for absence has null.
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

// Document gathers the operations of one request against one known state of an object.
type Document struct {
	base       object.Body
	operations []Operation
}

// New starts a document that applies only to the object with base's uid: a late write must not land on an object that
// was re-created under the same name.
func New(base object.Body) *Document {
	document := &Document{base: base}
	document.Test(object.Path{"metadata", "uid"}) // mutant: uid-not-tested
	return document
}

// Empty tells whether the document would change nothing.
func (d *Document) Empty() bool {
	return !slices.ContainsFunc(d.operations, func(o Operation) bool { return o.Op != "test" })
}

// Operations are the steps, in order.
func (d *Document) Operations() []Operation { return d.operations }

// Value is what path has once the operations so far are done.
func (d *Document) Value(path object.Path) (any, bool) { return object.Get(d.base, path...) }

// Test makes the document conditional on path still being as in the base: the value, or the absence of one. Where
// a parent is absent, it is the parent that must still be absent.
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

// Edit adds what sets or removes a field. Parents that are absent are made, on condition that they still are. A list with
// keys is merged with that of the base, on condition that it is still so.
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

// AddFinalizer appends a finalizer, leaving those of others alone.
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

// RemoveFinalizer takes a finalizer away, on condition that it is where it was.
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

// Guess drops empty maps and nulls from a body that was read as a Go type: the type writes them whether or not the API
// server has them. A wrong guess fails the document's tests, and the next one is made from a live read.
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

// Pointer writes a path as a JSON Pointer (RFC 6901).
func Pointer(path object.Path) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var text strings.Builder
	for _, element := range path {
		text.WriteString("/" + escape.Replace(element))
	}
	return text.String()
}
