package schemaview

import (
	"errors"
	"fmt"
	"strings"

	"github.com/einmal-operators/einmal/internal/attempt"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
)

// Edits returns what a handler has changed between two states of its copy. It returns nothing if there is no second.
func (v *View) Edits(before, after object.Body) []patch.Edit {
	if after == nil {
		return nil
	}
	// A copy that was read through the client has the record, which is not the handler's to write.
	before = record.Strip(before)
	return v.Description.Lists.Edits(before, record.Strip(after))
}

// Refused returns an error that names what a handler has changed although it must not.
func (v *View) Refused(by string, before, after object.Body) error {
	edits := v.Edits(before, after)
	if err := errors.Join(patch.Allowed(edits), v.ownershipViolation(by, edits)); err != nil {
		return &invoke.ProgrammingError{Err: err}
	}
	return nil
}

// ownershipViolation refuses changes of fields that other handlers own.
func (v *View) ownershipViolation(by string, edits []patch.Edit) error {
	var found []string
	for _, touch := range patch.Touches(edits) {
		if owner, owned := v.Pure.Owner(by, touch.Enters); owned {
			found = append(found, touch.Path.String()+" (owner: "+owner+")")
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("handler %s changed fields that other handlers own (einmal.OwnsStatus): %s; let only the owner write a field",
		by, strings.Join(found, ", "))
}

// Accepted returns what the handler made of the object, as far as it is to be written, or nil for nothing. A panic
// leaves half-made changes behind, and a handler must not change what is not its own: then Accepted returns what the last step left.
func (v *View) Accepted(call *attempt.Call, err error) (object.Body, error) {
	_, panicked := errors.AsType[*invoke.PanicError](err)
	if call.Left == nil || panicked {
		return call.Steps.Rest().Left, err
	}
	if refused := v.Refused(call.ID, call.Given, call.Left); refused != nil {
		return call.Steps.Rest().Left, errors.Join(err, refused)
	}
	return call.Left, err
}
