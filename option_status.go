package einmal

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/engine"
)

// statusField is where a kind has its status.
const statusField = "status"

// OwnsStatus is an option of a handler: these fields of the status, and all below them, are written by it alone. The paths
// begin below the status: OwnsStatus("phase", "database.ready"). A condition is named by its type, as an item of any list with
// keys is by its key: OwnsStatus("conditions[Ready]"); OwnsStatus("conditions") are all.
//
// Two handlers that own the same field, or one below the other's, are a registration mistake. The attempt of another handler that
// changes the field on its copy fails, with an error that names both, and nothing that it changed is written. A field for
// which the schema has no room is reported when the operator starts. What others than handlers of the kind write is
// not looked at. The default is that a field belongs to nobody: then two handlers that set it differently in one pass are warned
// of, and the later one wins.
func OwnsStatus(paths ...string) Option {
	return Option{name: "OwnsStatus", handler: func(settings *handlerSettings) error {
		if len(paths) == 0 {
			return errors.New("option OwnsStatus: it names no field of the status; give it one, such as phase")
		}
		for _, text := range paths {
			path, err := object.ParsePath(text)
			if err != nil {
				return fmt.Errorf("option OwnsStatus: %w", err)
			}
			if len(path) > 1 && path[0] == statusField {
				return fmt.Errorf("option OwnsStatus: %s: paths begin below the status: write it as %s", text, path[1:])
			}
			settings.owns = append(settings.owns, append(object.Path{statusField}, path...))
		}
		return nil
	}}
}

// checkOwned finds fields of the status that the type does not have, and such that two handlers own.
func (d *declaredKind) checkOwned() []error {
	var found []error
	kind, handlers := d.kind.GVK.Kind, d.handlers()
	for i, declared := range handlers {
		where := fmt.Sprintf("handler %q of %s: option OwnsStatus", declared.ID, kind)
		if len(declared.Owns) > 0 && declared.Verb == engine.Event {
			found = append(found, fmt.Errorf("%s: an event handler changes nothing; leave it out", where))
		}
		for _, path := range declared.Owns {
			if err := d.checkOwnedField(path); err != nil {
				found = append(found, fmt.Errorf("%s: %w", where, err))
			}
			if owner, owned := ownerOf(handlers[:i], path); owned != nil {
				found = append(found, fmt.Errorf("%s: handler %q owns %s already, and this one wants %s: let one of them write it, or leave the option out",
					where, owner, owned, path))
			}
		}
	}
	return found
}

// ownerOf finds the handler that owns a field at, above or below a path.
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

// checkOwnedField refuses fields that the type does not have. Below a list of structs one more element names an item.
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

// typeAt is the type of a field that is reached through structs alone.
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

// deepest is how far the fields of a status are followed: types can hold themselves.
const deepest = 8

// statusFields are the fields of the status that a Go type has, down to those that are no structs. Records are left out:
// they have another place where the schema has no room for them.
func statusFields(in reflect.Type) []object.Path {
	status, found := typeAt(in, object.Path{statusField})
	if !found {
		return nil
	}
	return leaves(status, object.Path{statusField})
}

func leaves(in reflect.Type, at object.Path) []object.Path {
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	marshaler := reflect.TypeFor[json.Marshaler]()
	switch {
	case len(at) > deepest, in == reflect.TypeFor[Records]():
		return nil
	case in.Kind() != reflect.Struct, in.Implements(marshaler), reflect.PointerTo(in).Implements(marshaler):
		return []object.Path{at}
	}
	var found []object.Path
	for field := range in.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case !field.IsExported() && !field.Anonymous, name == "-":
		case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
			found = append(found, leaves(field.Type, at)...)
		case name == "":
			found = append(found, leaves(field.Type, at.Child(field.Name))...)
		default:
			found = append(found, leaves(field.Type, at.Child(name))...)
		}
	}
	return found
}
