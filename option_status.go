package einmal

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/engine"
)

// statusField is the field that contains the status.
const statusField = "status"

// OwnsStatus makes a handler the only writer of these fields of the status, and of everything below them. Paths start
// below the status: OwnsStatus("phase", "database.ready"). Name a condition by its type, and an item of any list with
// keys by its key: OwnsStatus("conditions[Ready]"). OwnsStatus("conditions") covers all conditions.
//
// Run returns an error if two handlers own the same field, or one owns a field below that of the other. If another
// handler changes the field on its copy, its attempt fails with an error that names both handlers, and none of its
// changes is written. It is a programming error, which this process does not retry. A field that the schema does not have is reported when the operator starts. Writes of other
// clients are not checked.
//
// By default, nothing owns a field. If two handlers then set it differently in one reconciliation, the later one wins,
// and Einmal warns about it.
func OwnsStatus(paths ...string) HandlerOption {
	return option{name: "OwnsStatus", handler: func(settings *handlerSettings) error {
		if len(paths) == 0 {
			return errors.New("option OwnsStatus: must have at least one field of the status, such as phase, got none")
		}
		for _, text := range paths {
			path, err := object.ParsePath(text)
			if err != nil {
				return fmt.Errorf("option OwnsStatus: %w", err)
			}
			if len(path) > 1 && path[0] == statusField {
				return fmt.Errorf("option OwnsStatus: paths must start below the status, got %s: write it as %s", text, path[1:])
			}
			settings.owns = append(settings.owns, append(object.Path{statusField}, path...))
		}
		return nil
	}}
}

// checkOwned returns errors for owned fields that the type does not have, and for fields with two owners.
func (d *declaredKind) checkOwned() []error {
	var found []error
	kind, handlers := d.kind.GVK.Kind, d.handlers()
	for i, declared := range handlers {
		where := fmt.Sprintf("handler %q of %s: option OwnsStatus", declared.ID, kind)
		for _, path := range declared.Owns {
			if err := d.checkOwnedField(path); err != nil {
				found = append(found, fmt.Errorf("%s: %w", where, err))
			}
			if owner, owned := ownerOf(handlers[:i], path); owned != nil {
				found = append(found, fmt.Errorf("%s: handler %q already owns %s, which conflicts with %s: let one handler write it, or leave the option out",
					where, owner, owned, path))
			}
		}
	}
	return found
}

// ownerOf returns the handler that owns a field at, above or below a path, and that field.
func ownerOf(handlers []engine.Handler, path object.Path) (id string, owned object.Path) {
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
func (d *declaredKind) checkOwnedField(path object.Path) error {
	if d.goType == reflect.TypeFor[unstructured.Unstructured]() {
		return nil
	}
	err := fieldOf(d.goType, path, path)
	if err == nil {
		return nil
	}
	list, found := typeAt(d.goType, path[:len(path)-1])
	if found && list.Kind() == reflect.Slice && list.Elem().Kind() == reflect.Struct {
		return nil
	}
	return err
}

// typeAt returns the Go type of a field that is reached through structs alone.
func typeAt(in reflect.Type, path object.Path) (reflect.Type, bool) {
	for _, element := range path {
		for in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		if in.Kind() != reflect.Struct {
			return nil, false
		}
		child, found := jsonField(in, element)
		if !found {
			return nil, false
		}
		in = child
	}
	return in, true
}
