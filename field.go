package einmal

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// FieldFunc is a handler of one field, with the field's value when the handler last succeeded, and now. A field that is not
// there is the zero V; a pointer tells it from one that is there. Else it is as a HandlerFunc.
type FieldFunc[V, T any] func(ctx context.Context, c *Change[T], before, after V) error

// OnField declares a handler for changes of one field: OnUpdate with Field(path), and the values in the type V. It does not run
// at creation, when a field comes to be with its object; AlsoAtCreation asks for that. The value before is the zero V too
// where the object is so large that it is not kept: see Change.Old.
//
// The options are those of OnUpdate; a Field must have the same path, to give it conditions. A value that does not fit V
// fails the handler for good, and the error names the field. Of Secrets no values are kept: use OnUpdate there.
func OnField[V, T any](kind *Kind[T], id, path string, fn FieldFunc[V, T], options ...Option) {
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
	kind.declare(cause.Update, id, handle, append([]Option{Field(path)}, options...))
	where := fmt.Sprintf("handler %s of %s", id, kind.declared.kind.GVK.Kind)
	fields := kind.declared.kind.Handlers[len(kind.declared.kind.Handlers)-1].Fields
	for _, other := range fields[min(1, len(fields)):] {
		if !slices.Equal(other, fields[0]) {
			kind.mistake(fmt.Errorf("%s: option Field: OnField looks at %s alone, not at %s: use OnUpdate for several", where, fields[0], other))
		}
	}
	if kind.declared.kind.Secret() {
		kind.mistake(fmt.Errorf("%s: of Secrets no values are kept, so that OnField has none from before: use OnUpdate with Field", where))
	}
}

// AlsoAtCreation is an option of OnField and OnUpdate: the handler answers the creation too, with the Reason Create, where
// there is something that it looks at. The value before is then the zero value, and Old is not there. It is one of the
// create handlers in all else: it does not run at creation again once it has succeeded, and the creation waits for it.
func AlsoAtCreation() Option {
	return Option{name: "AlsoAtCreation", handler: func(settings *handlerSettings) error {
		settings.atCreation = true
		return nil
	}}
}

// valueOf reads the field of a body as V.
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
		return into, Permanent(fmt.Errorf("field %s: what it is %s cannot be read as %T, the type of the handler's values: %w", path, when, into, err))
	}
	return into, nil
}
