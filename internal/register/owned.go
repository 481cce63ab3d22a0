package register

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/declaration"
)

// checkOwned returns errors for owned fields that the type does not have, and for fields with two owners.
func (k Kind) checkOwned() []error {
	var found []error
	for i, declared := range k.Handlers {
		where := fmt.Sprintf("handler %q of %s: option OwnsStatus", declared.ID, k.Name)
		for _, path := range declared.Owns {
			if err := checkOwnedField(k.Type, path); err != nil {
				found = append(found, fmt.Errorf("%s: %w", where, err))
			}
			if owner, owned := ownerOf(k.Handlers[:i], path); owned != nil {
				found = append(found, fmt.Errorf("%s: handler %q already owns %s, which conflicts with %s: let one handler write it, or leave the option out",
					where, owner, owned, path))
			}
		}
	}
	return found
}

// ownerOf returns the handler that owns a field at, above or below a path, and that field.
func ownerOf(handlers []declaration.Handler, path object.Path) (id string, owned object.Path) {
	for _, declared := range handlers {
		for _, other := range declared.Owns {
			if path.Under(other...) || other.Under(path...) {
				return declared.ID, other
			}
		}
	}
	return "", nil
}

// checkOwnedField returns an error for a field that the type does not have. In a list of structs, one more path element
// names an item.
func checkOwnedField(of reflect.Type, path object.Path) error {
	if of == reflect.TypeFor[unstructured.Unstructured]() {
		return nil
	}
	err := fieldOf(of, path, path)
	if err == nil {
		return nil
	}
	list, found := TypeAt(of, path[:len(path)-1])
	if found && list.Kind() == reflect.Slice && list.Elem().Kind() == reflect.Struct {
		return nil
	}
	return err
}
