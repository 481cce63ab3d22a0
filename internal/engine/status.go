package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
)

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

// reportTouches reports what a handler has set outside of the status, and where it undoes in the status what another handler did.
func (p *pass) reportTouches(run handler.Run, edits []patch.Edit, overwritten []journal.Overwritten) {
	p.report.OwnEdit(run.ID, outsideStatus(patch.Touches(edits)))
	p.report.StatusConflict(run.ID, overwritten)
}

// outsideStatus returns the fields outside of the status.
func outsideStatus(found []patch.Touch) []string {
	var fields []string
	for _, touch := range found {
		if !touch.Path.Under(journal.Status) {
			fields = append(fields, touch.Path.String())
		}
	}
	return fields
}
