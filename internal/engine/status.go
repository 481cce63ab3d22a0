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

// What people see when handlers get into each other's way, or the API server does not keep what they set. One event tells
// of all fields: those that differ in their text alone are taken for one.
const (
	conflictReason   = "StatusConflict"
	conflictSentence = "conflicting status writes by handlers; kept the value from %s: %s. " +
		"Let one handler write each field and declare it with OwnsStatus"
	departedReason   = "FieldNotKept"
	departedSentence = "the API server did not keep values that handlers set: %s"
	handling         = "Handle"
)

// touched is a field that a handler has set in this pass.
type touched struct {
	patch.Touch

	by string
}

// contradiction is what is reported once for a kind.
type contradiction struct{ earlier, later, field string }

// edits are what a handler has changed between two states of its copy; nothing if there is no second. Lists with keys are
// to be merged.
func (p *pass) edits(before, after object.Body) []patch.Edit {
	if after == nil {
		return nil
	}
	// A copy that was read through the client has the record, which is not the handler's to write.
	before = record.Strip(before)
	return p.description.Lists.Keyed(before, patch.Edits(before, record.Strip(after)))
}

// refused says what a handler has changed that is not its own.
func (p *pass) refused(by string, before, after object.Body) error {
	edits := p.edits(before, after)
	if err := errors.Join(patch.Allowed(edits), p.trespass(by, edits)); err != nil {
		return &invoke.ProgrammingError{Err: err}
	}
	return nil
}

// trespass refuses changes of fields that other handlers own.
func (p *pass) trespass(by string, edits []patch.Edit) error {
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
			if _, told := p.told.LoadOrStore(contradiction{earlier.by, run.ID, field}, true); !told {
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
		p.warn(conflictReason, handling, conflictSentence, run.ID, strings.Join(news, ", "))
	}
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
	if _, told := p.told.LoadOrStore(ownEdit{by}, true); !told {
		p.log.Warn("handler changes its own object outside of the status, which can fight GitOps tools", "handler", by, "fields", fields)
	}
}

// tellDropped compares the answer with what was meant. A field that the API server dropped or rewrote is reported once
// for its kind.
func (p *pass) tellDropped(w *work, sent request, answer object.Body) {
	var news []string
	for _, departure := range patch.Departures(sent.document, sent.edits, answer) {
		if _, told := p.told.LoadOrStore(departure.Field, true); told {
			continue
		}
		by := w.setter(departure.Path)
		if departure.Dropped {
			p.log.Warn("API server dropped a field set by a handler", "remedy", "add the field to the schema of the kind",
				"field", departure.Field, "handler", by)
			news = append(news, fmt.Sprintf("%s set by %s was dropped (add it to the schema of the kind)", departure.Field, by))
			continue
		}
		p.log.Warn("API server changed a field set by a handler", "field", departure.Field, "handler", by)
		news = append(news, fmt.Sprintf("%s set by %s was changed (set the value in the form that the API server stores)", departure.Field, by))
	}
	if len(news) > 0 {
		p.warn(departedReason, handling, departedSentence, strings.Join(news, ", "))
	}
}

// setter is the handler that has set a field last.
func (w *work) setter(path object.Path) string {
	for _, touch := range slices.Backward(w.touched) {
		if touch.Path.Under(path...) {
			return touch.by
		}
	}
	return ""
}

// tellNoRoom reports, when the kind is discovered, the fields of the status for which the schema has no room: those of
// the handlers' type, and those that handlers own. They are not reported again when a handler sets them.
func (k *keeper) tellNoRoom(has func(object.Path) bool) {
	if has == nil {
		return
	}
	var lacking []string
	lack := func(path object.Path, text string) {
		if has(path) {
			return
		}
		if _, told := k.told.LoadOrStore(path.String(), true); !told {
			lacking = append(lacking, text)
		}
	}
	for _, declared := range k.kind.Handlers {
		for _, path := range declared.Owns {
			lack(path, fmt.Sprintf("%s (set by %s)", path, declared.ID))
		}
	}
	for _, path := range k.kind.StatusFields {
		lack(path, path.String())
	}
	if len(lacking) > 0 {
		k.log.Warn("schema has no such status fields, the API server drops what handlers set there", "fields", lacking,
			"remedy", "add them to the CustomResourceDefinition and apply it")
	}
}
