// Package register checks what an operator declares: ids of handlers, fields of Go types, and types of results.
package register

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/declaration"
)

// Kind is a kind with its handlers, as they are declared.
type Kind struct {
	// Name is its name, for errors. Type is its Go type.
	Name string
	Type reflect.Type
	// Handlers are all handlers, in the order of their declaration.
	Handlers []declaration.Handler
}

// Check returns all mistakes in the declarations of the handlers.
func (k Kind) Check() error {
	var found []error
	if len(k.Handlers) == 0 {
		found = append(found, fmt.Errorf("kind %s has no handlers: declare one, such as OnCreate", k.Name))
	}
	ids := map[string]bool{}
	for _, declared := range k.Handlers {
		where := fmt.Sprintf("handler %q of %s", declared.ID, k.Name)
		if err := CheckID(declared.ID); err != nil {
			found = append(found, fmt.Errorf("%s: %w", where, err))
		}
		if ids[declared.ID] {
			found = append(found, fmt.Errorf("%s is declared twice: give each handler its own id, since records refer to it", where))
		}
		ids[declared.ID] = true
		if declared.Call == nil {
			found = append(found, fmt.Errorf("%s has no function", where))
		}
		for _, field := range append(slices.Clone(declared.Fields), Conditions(declared.Declaration)...) {
			if err := CheckField(k.Type, declared.Verb, field); err != nil {
				found = append(found, fmt.Errorf("%s: %w", where, err))
			}
		}
	}
	return errors.Join(slices.Concat(found, k.checkFormer(), k.checkOwned())...)
}

// Conditions returns the fields that occur only in filters of a handler. Labels and annotations are left out: they are
// always allowed.
func Conditions(declared handler.Declaration) []object.Path {
	if declared.Scope == nil {
		return nil
	}
	return slices.DeleteFunc(declared.Scope.Paths(), func(field object.Path) bool {
		named := slices.ContainsFunc(declared.Fields, func(other object.Path) bool { return slices.Equal(field, other) })
		return named || field.Under("metadata", "labels") || field.Under("metadata", "annotations")
	})
}

// checkFormer returns errors for former ids that do not identify exactly one handler.
func (k Kind) checkFormer() []error {
	holders := map[string]string{}
	for _, declared := range k.Handlers {
		holders[declared.ID] = declared.ID
	}
	var found []error
	for _, declared := range k.Handlers {
		for _, former := range declared.Former {
			where := fmt.Sprintf("handler %q of %s: option FormerlyKnownAs", declared.ID, k.Name)
			holder, taken := holders[former]
			switch {
			case CheckID(former) != nil:
				found = append(found, fmt.Errorf("%s: %q is not a valid id: use the id that an earlier release declared", where, former))
			case taken:
				found = append(found, fmt.Errorf("%s: %q is already the id of handler %q; a record belongs to one handler, so leave it out or rename that handler", where, former, holder))
			}
			holders[former] = declared.ID
		}
	}
	return found
}

// CheckID returns an error if an id of a handler is invalid.
func CheckID(id string) error {
	if regexp.MustCompile(`^[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$`).MatchString(id) {
		return nil
	}
	return errors.New("id must have 1 to 63 letters, digits, dashes, dots and underscores, and begin and end with a letter or digit")
}
