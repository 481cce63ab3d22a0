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
)

// What people see when handlers get into each other's way, or the API server does not keep what they set. One event tells
// of all fields: those that differ in their text alone are taken for one.
const (
	conflictReason   = "StatusConflict"
	conflictSentence = "handlers have set fields of the status differently in one pass, and what %s has set stays: %s. Let one handler write a field, and say so with OwnsStatus"
	departedReason   = "FieldNotKept"
	departedSentence = "the API server has not kept what handlers have set: %s"
	handling         = "Handle"
)

// touched is a field that a handler has set in this pass.
type touched struct {
	patch.Touch

	by string
}

// contradiction is what is told once for a kind.
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
	return errors.Join(patch.Allowed(edits), p.trespass(by, edits))
}

// trespass refuses changes of fields that other handlers own.
func (p *pass) trespass(by string, edits []patch.Edit) error {
	var found []string
	for _, touch := range patch.Touches(edits) {
		if owner, owned := p.pure.Owner(by, touch.Enters); owned {
			found = append(found, touch.Path.String()+" of handler "+owner)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("handler %s has changed what others own (einmal.OwnsStatus): %s; let one handler write a field, and the others leave it as it is",
		by, strings.Join(found, ", "))
}

// noteTouches remembers which handler has set what, and tells where one of the status undoes what another one did.
func (p *pass) noteTouches(w *work, run handler.Run, edits []patch.Edit) {
	var news []string
	found := patch.Touches(edits)
	for _, touch := range found {
		for _, earlier := range w.touched {
			if earlier.by == run.ID || !touch.Path.Under(statusResource) || !touch.Contradicts(earlier.Touch) {
				continue
			}
			p.meter.Contradiction(run.ID, earlier.by)
			field := touch.Path.String()
			if _, told := p.told.LoadOrStore(contradiction{earlier.by, run.ID, field}, true); !told {
				p.log.Warn("two handlers set a field of the status differently in one pass; the later one wins",
					"field", field, "earlier", earlier.by, "later", run.ID)
				news = append(news, fmt.Sprintf("%s (%s before)", field, earlier.by))
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
			p.log.Warn("the API server dropped a field that a handler set: add it to the schema of the kind",
				"field", departure.Field, "handler", by)
			news = append(news, fmt.Sprintf("%s of handler %s was dropped (add it to the schema of the kind)", departure.Field, by))
			continue
		}
		p.log.Warn("the API server changed a field that a handler set", "field", departure.Field, "handler", by)
		news = append(news, fmt.Sprintf("%s of handler %s was changed (set it as the API server writes it)", departure.Field, by))
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
			lack(path, fmt.Sprintf("%s of handler %s", path, declared.ID))
		}
	}
	for _, path := range k.kind.StatusFields {
		lack(path, path.String())
	}
	if len(lacking) > 0 {
		k.log.Warn("the schema has no room for fields of the status, so the API server drops what handlers set there: "+
			"add them to the definition of the kind, and apply it", "fields", lacking)
	}
}
