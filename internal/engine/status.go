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
)

// What people see when handlers get into each other's way. One event tells of all fields: those that differ in their text alone are taken for one.
const (
	conflictReason   = "StatusConflict"
	conflictSentence = "conflicting status writes by handlers; kept the value from %s: %s. " +
		"Let one handler write each field and declare it with OwnsStatus"
	handling = "Handle"
)

// touched is a field that a handler has set in this pass.
type touched struct {
	patch.Touch

	by string
}

// contradiction is what is reported once for a kind.
type contradiction struct{ earlier, later, field string }

// edits are what a handler has changed between two states of its copy; nothing if there is no second.
func (p *pass) edits(before, after object.Body) []patch.Edit {
	if after == nil {
		return nil
	}
	// A copy that was read through the client has the record, which is not the handler's to write.
	before = record.Strip(before)
	return p.description.Lists.Edits(before, record.Strip(after))
}

// refused says what a handler has changed that is not its own.
func (p *pass) refused(by string, before, after object.Body) error {
	edits := p.edits(before, after)
	if err := errors.Join(patch.Allowed(edits), p.ownershipViolation(by, edits)); err != nil {
		return &invoke.ProgrammingError{Err: err}
	}
	return nil
}

// ownershipViolation refuses changes of fields that other handlers own.
func (p *pass) ownershipViolation(by string, edits []patch.Edit) error {
	var found []string
	for _, touch := range patch.Touches(edits) {
		if owner, owned := p.pure.Owner(by, touch.Enters); owned {
			found = append(found, touch.Path.String()+" (owner: "+owner+")")
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("handler %s changed fields that other handlers own (einmal.OwnsStatus): %s; let only the owner write a field",
		by, strings.Join(found, ", "))
}

// noteTouches remembers which handler has set what, and tells where one of the status undoes what another one did.
func (p *pass) noteTouches(w *work, run handler.Run, edits []patch.Edit) {
	var news []string
	found := patch.Touches(edits)
	p.tellOwnEdit(run.ID, found)
	for _, touch := range found {
		for _, earlier := range w.touched {
			if earlier.by == run.ID || !touch.Path.Under(statusResource) || !touch.Contradicts(earlier.Touch) {
				continue
			}
			p.meter.Contradiction(run.ID, earlier.by)
			field := touch.Path.String()
			if _, reported := p.reported.LoadOrStore(contradiction{earlier.by, run.ID, field}, true); !reported {
				p.log.Warn("conflicting status writes by two handlers, the later value is kept",
					"field", field, "earlier", earlier.by, "later", run.ID)
				news = append(news, fmt.Sprintf("%s (earlier value from %s)", field, earlier.by))
			}
		}
	}
	for _, touch := range found {
		w.touched = append(w.touched, touched{touch, run.ID})
	}
	if len(news) > 0 {
		p.warn(conflictReason, conflictSentence, run.ID, strings.Join(news, ", "))
	}
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

// shownFields is how many of the fields that a handler has changed are logged.
const shownFields = 3

// ownEdit is the report that a handler changes its own object outside of the status. It is made once for a kind.
type ownEdit struct{ by string }

// tellOwnEdit reports that a handler changes its own object outside of the status. Tools that keep objects as they are in a repository can
// change it back.
func (p *pass) tellOwnEdit(by string, found []patch.Touch) {
	var fields []string
	for _, touch := range found {
		if !touch.Path.Under(statusResource) && len(fields) < shownFields {
			fields = append(fields, touch.Path.String())
		}
	}
	if len(fields) == 0 {
		return
	}
	if _, reported := p.reported.LoadOrStore(ownEdit{by}, true); !reported {
		p.log.Warn("handler changes its own object outside of the status, which can fight GitOps tools", "handler", by, "fields", fields)
	}
}
