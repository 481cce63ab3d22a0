// Package filter tells which objects a handler is for, and which changes. Filters are predicates over the essence of an
// object with its name; they may call functions of the operator's author, whose panics come back as errors.
package filter

import (
	"fmt"
	"runtime/debug"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// Filter tells whether an object is one that a handler is for.
type Filter interface {
	// Holds may panic where a function of an author does: ask Test instead.
	Holds(body object.Body) bool
	// Paths are the fields that are looked at by name.
	Paths() []object.Path
}

// Field holds where the value at a path matches.
type Field struct {
	Path  object.Path
	Match Match
}

// Holds tells whether the value matches.
func (f Field) Holds(body object.Body) bool {
	value, found := object.Get(body, f.Path...)
	return f.Match.holds(value, found)
}

// Paths is the path.
func (f Field) Paths() []object.Path { return []object.Path{f.Path} }

// All holds where every filter does; of none it holds.
type All []Filter

// Holds asks one filter after the other, until one does not hold.
func (f All) Holds(body object.Body) bool {
	for _, one := range f {
		if !one.Holds(body) {
			return false
		}
	}
	return true
}

// Paths are those of all filters.
func (f All) Paths() []object.Path {
	var paths []object.Path
	for _, one := range f {
		paths = append(paths, one.Paths()...)
	}
	return paths
}

// Any holds where some filter does; of none it does not hold.
type Any []Filter

// Holds asks one filter after the other, until one holds.
func (f Any) Holds(body object.Body) bool {
	for _, one := range f {
		if one.Holds(body) {
			return true
		}
	}
	return false
}

// Paths are those of all filters.
func (f Any) Paths() []object.Path { return All(f).Paths() }

// Not holds where its filter does not.
type Not struct{ Filter }

// Holds is the opposite of what the filter says.
func (f Not) Holds(body object.Body) bool { return !f.Filter.Holds(body) }

// When is a function of the operator's author.
type When func(object.Body) bool

// Holds calls the function.
func (f When) Holds(body object.Body) bool { return f(body) }

// Paths are none: nobody can tell what the function looks at.
func (f When) Paths() []object.Path { return nil }

// PanicError is a panic of a function of the operator's author, caught.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names the panic; the stack is kept apart, for the log.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Test asks a filter, and makes an error of a panic.
func Test(f Filter, body object.Body) (holds bool, err error) {
	defer caught(&err)
	return f.Holds(body), nil
}

func caught(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack()}
	}
}
