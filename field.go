package einmal

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/register"
)

// FieldFunc is the function of an OnField handler. It gets the value that the field had when the handler last
// succeeded, and the current value. A missing field is the zero V; use a pointer type to distinguish the two. All else
// is as for HandlerFunc.
type FieldFunc[V, T any] func(ctx context.Context, c *Change[T], before, after V) error

// OnField declares a handler for changes of one field. It is OnUpdate with Fields(path), and its function gets the
// values as type V. It does not run at creation, unless it has the option AlsoAtCreation. The value before the change
// is also the zero V if it is not recorded, for very large objects: see Change.Old.
//
// To run for some changes only, add FieldChanges with the same path. Run returns an error if V does not fit the type of
// the field. In an object of an open type (a map, or unstructured.Unstructured), a value that does not fit V makes the
// handler fail permanently, with an error that names the field. Values of Secrets are not recorded: use OnUpdate for
// Secrets.
func OnField[V, T any](kind *Kind[T], id, path string, fn FieldFunc[V, T], options ...UpdateOption) {
	var handle HandlerFunc[T]
	if fn != nil {
		handle = func(ctx context.Context, c *Change[T]) error {
			parsed, err := object.ParsePath(path) // It is checked at the declaration.
			if err != nil {
				return err
			}
			before, err := valueOf[V](c.was, parsed, "before the change")
			if err != nil {
				return err
			}
			after, err := valueOf[V](c.is, parsed, "now")
			if err != nil {
				return err
			}
			return fn(ctx, c, before, after)
		}
	}
	declareWith(kind, cause.Update, id, handle, append([]UpdateOption{FieldChanges(path)}, options...))
	fields := kind.declared.kind.Handlers[len(kind.declared.kind.Handlers)-1].Fields
	for _, other := range fields[min(1, len(fields)):] {
		if !slices.Equal(other, fields[0]) {
			kind.mistakeOf(id, fmt.Errorf("option Fields: OnField compares %s only, not %s: use OnUpdate for several fields", fields[0], other))
		}
	}
	kind.checkFieldType(id, fields, reflect.TypeFor[V]())
	if kind.declared.kind.Secret() {
		kind.mistakeOf(id, errors.New("OnField: no values of Secrets are kept, so there is no value before the change: use OnUpdate with Fields"))
	}
}

// AlsoAtCreation makes an update handler also run at the creation of an object, with the Reason ReasonCreate, if the
// object has a value for something that the handler compares. The value before is then the zero value, and Old is
// empty. The handler then also counts as a create handler: once it has succeeded it does not run for the creation
// again, and the creation is not finished until then.
func AlsoAtCreation() UpdateOption {
	return option{name: "AlsoAtCreation", handler: func(settings *handlerSettings) error {
		settings.atCreation = true
		return nil
	}}
}

// valueOf reads a field of a body as V.
func valueOf[V any](body object.Body, path object.Path, when string) (V, error) {
	var into V
	value, found := object.Get(body, path...)
	if !found || value == nil {
		return into, nil
	}
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &into)
	}
	if err != nil {
		return into, Permanent(fmt.Errorf("field %s: cannot read its value %s as %T, the type of the handler's values: %w", path, when, into, err))
	}
	return into, nil
}

// checkFieldType reports a type of values that the field's Go type cannot be read as.
func (k *Kind[T]) checkFieldType(id string, fields []object.Path, values reflect.Type) {
	if len(fields) == 0 {
		return // The path is wrong, which is reported already.
	}
	declared, ok := register.TypeAt(k.declared.goType, fields[0])
	if !ok || register.Fits(declared, values) {
		return
	}
	k.mistakeOf(id, fmt.Errorf("OnField: %s is a %s, and the handler takes a %s", fields[0], declared, values))
}
