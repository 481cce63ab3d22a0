// Package filter decides which objects and which changes a handler matches. Filters are predicates over the essence and the
// name of an object. They may call functions of the operator's author; a panic in such a function becomes an error.
package filter

import (
	"fmt"
	"runtime/debug"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Filter matches objects.
type Filter interface {
	// Holds reports whether the filter matches. It may panic if a function of the operator's author does; use Test instead.
	Holds(body object.Body) bool
	// Paths returns the fields that the filter reads.
	Paths() []object.Path
}

// Field matches if the value at Path matches.
type Field struct {
	Path  object.Path
	Match Match
}

// Holds reports whether the value matches.
func (f Field) Holds(body object.Body) bool {
	value, found := object.Get(body, f.Path...)
	return f.Match.holds(value, found)
}

// Paths returns Path.
func (f Field) Paths() []object.Path { return []object.Path{f.Path} }

// All matches if every filter matches. An empty All matches.
type All []Filter

// Holds reports whether every filter matches. It stops at the first that does not.
func (f All) Holds(body object.Body) bool {
	for _, one := range f {
		if !one.Holds(body) {
			return false
		}
	}
	return true
}

// Paths returns the paths of all filters.
func (f All) Paths() []object.Path {
	var paths []object.Path
	for _, one := range f {
		paths = append(paths, one.Paths()...)
	}
	return paths
}

// Any matches if at least one filter matches. An empty Any does not match.
type Any []Filter

// Holds reports whether a filter matches. It stops at the first that does.
func (f Any) Holds(body object.Body) bool {
	for _, one := range f {
		if one.Holds(body) {
			return true
		}
	}
	return false
}

// Paths returns the paths of all filters.
func (f Any) Paths() []object.Path { return All(f).Paths() }

// Not matches if its filter does not.
type Not struct{ Filter }

// Holds reports whether the filter does not match.
func (f Not) Holds(body object.Body) bool { return !f.Filter.Holds(body) }

// When is a predicate written by the operator's author.
type When func(object.Body) bool

// Holds calls the function.
func (f When) Holds(body object.Body) bool { return f(body) }

// Paths returns nil: what the function reads is unknown.
func (f When) Paths() []object.Path { return nil }

// PanicError is a recovered panic of a function of the operator's author.
type PanicError struct {
	Value any
	Stack []byte
}

// Error describes the panic. The stack is not part of the text, so that it can be logged separately.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Test reports whether a filter matches, and returns a panic as an error.
func Test(f Filter, body object.Body) (holds bool, err error) {
	defer caught(&err)
	return f.Holds(body), nil
}

func caught(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack()}
	}
}
