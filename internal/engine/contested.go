package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// contestedDelay is when a handler runs again after another client has changed the same items of a list.
const contestedDelay = time.Second

// contestedError says that the changes of a handler do not fit a list any more.
type contestedError struct{ field object.Path }

// Error names the list.
func (e *contestedError) Error() string {
	return fmt.Sprintf("another client changed the same items of the list %s while the handler ran", e.field)
}

// seen returns the object that documents are computed from in the form that the Go type of the handlers writes. Only changes of lists need
// that form.
func (p *pass) seen(w *work) (object.Body, error) {
	changesList := func(edit patch.Edit) bool { return edit.List != nil }
	switch {
	case !slices.ContainsFunc(w.rest, changesList) && !slices.ContainsFunc(w.status, changesList):
		return p.base, nil
	case !p.exact:
		return p.body, nil
	}
	seen, err := p.canonical(p.base)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", p.key, err)
	}
	return seen, nil
}

// giveUp leaves out all changes of the handlers that have changed a contested list. They run again on the object as it is then.
func (w *work) giveUp(p *pass, contested *contestedError) {
	var by []string
	for _, edit := range slices.Concat(w.rest, w.status) {
		if slices.Equal(edit.Path, contested.field) {
			by = append(by, edit.By)
		}
	}
	leaves := func(edit patch.Edit) bool { return slices.Contains(by, edit.By) }
	w.rest, w.status = slices.DeleteFunc(slices.Clone(w.rest), leaves), slices.DeleteFunc(slices.Clone(w.status), leaves)
	w.refusal = contested
	w.current = p.essence(patch.Apply(w.written, slices.Concat(w.rest, w.status)))
	for i, o := range w.outcomes {
		if o.seen = w.current; slices.Contains(by, o.run.ID) {
			o = o.contested(p, contested)
		}
		w.outcomes[i] = o
	}
}

// contested is what becomes of an attempt that has changed the same items of a list as another client.
func (o outcome) contested(p *pass, contested *contestedError) outcome {
	o, over := o.takenBack(p, handler.Result{
		Outcome: record.Retry, Asked: true, Delay: contestedDelay, Message: contested.Error(),
	})
	if over {
		p.report.ListContested(o.run, o.result, contested.field.String())
	}
	return o
}
