package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/report"
)

// touched is a field that a handler has set in this pass.
type touched struct {
	patch.Touch

	by string
}

// edits are what a handler has changed between two states of its copy; nothing if there is no second.
func (s *shape) edits(before, after object.Body) []patch.Edit {
	if after == nil {
		return nil
	}
	// A copy that was read through the client has the record, which is not the handler's to write.
	before = record.Strip(before)
	return s.description.Lists.Edits(before, record.Strip(after))
}

// refused says what a handler has changed that is not its own.
func (s *shape) refused(by string, before, after object.Body) error {
	edits := s.edits(before, after)
	if err := errors.Join(patch.Allowed(edits), s.ownershipViolation(by, edits)); err != nil {
		return &invoke.ProgrammingError{Err: err}
	}
	return nil
}

// ownershipViolation refuses changes of fields that other handlers own.
func (s *shape) ownershipViolation(by string, edits []patch.Edit) error {
	var found []string
	for _, touch := range patch.Touches(edits) {
		if owner, owned := s.pure.Owner(by, touch.Enters); owned {
			found = append(found, touch.Path.String()+" (owner: "+owner+")")
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("handler %s changed fields that other handlers own (einmal.OwnsStatus): %s; let only the owner write a field",
		by, strings.Join(found, ", "))
}

// noteTouches remembers which handler has set what, and reports where one of the status undoes what another one did.
func (p *pass) noteTouches(w *work, run handler.Run, edits []patch.Edit) {
	found := patch.Touches(edits)
	p.report.OwnEdit(run.ID, outsideStatus(found))
	var overwritten []report.Overwritten
	for _, touch := range found {
		for _, earlier := range w.touched {
			if earlier.by != run.ID && touch.Path.Under(statusResource) && touch.Contradicts(earlier.Touch) {
				overwritten = append(overwritten, report.Overwritten{Field: touch.Path.String(), Earlier: earlier.by})
			}
		}
	}
	for _, touch := range found {
		w.touched = append(w.touched, touched{touch, run.ID})
	}
	p.report.StatusConflict(run.ID, overwritten)
}

// outsideStatus returns the fields outside of the status.
func outsideStatus(found []patch.Touch) []string {
	var fields []string
	for _, touch := range found {
		if !touch.Path.Under(statusResource) {
			fields = append(fields, touch.Path.String())
		}
	}
	return fields
}

// setter returns the handler that has set a field last, or "". The API server names items of lists by their index, as in
// status.endpoints[0].host, and Einmal by their keys, so it is the last handler that has set any item of the list.
func (w *work) setter(field string) string {
	field, _, _ = strings.Cut(field, "[")
	for _, touch := range slices.Backward(w.touched) {
		if set := touch.Path.String(); strings.HasPrefix(field, set) || strings.HasPrefix(set, field) {
			return touch.by
		}
	}
	return ""
}
