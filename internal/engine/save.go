package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// saveTries is how often one pass sends its work anew after somebody else was faster.
const saveTries = 5

// statusResource is the subresource that status writes go to.
const statusResource = "status"

// request is one document and where it goes.
type request struct {
	subresource string
	document    *patch.Document
	edits       []patch.Edit
	sent        func()
}

// save writes what a pass did. After a conflict it reads live and folds again; handlers are not run again. What cannot
// be written now stays in memory, and the next pass of the object starts with it.
func (p *pass) save(ctx context.Context, w *work) error {
	err := p.trySave(ctx, w)
	switch {
	case errors.Is(err, kube.ErrGone):
		p.gone(true)
		w.answer(nil, err)
		return nil
	case err != nil:
		p.memory.unsaved = w
		return err
	}
	p.memory.unsaved = nil
	w.answer(p.base, w.refusal)
	return nil
}

func (p *pass) trySave(ctx context.Context, w *work) error {
	var err error
	for range saveTries {
		err = p.send(ctx, w)
		if err == nil || !kube.Refused(err) {
			return err
		}
		if failed := p.reopen(ctx, w, err); failed != nil {
			return failed
		}
	}
	return fmt.Errorf("%s changes faster than it can be written: %w", p.key, err)
}

// reopen goes on from the live object after a refusal. When nobody else has changed it, it is the content that is
// refused: then the handlers' changes are given up, or, if there are none, the refusal is returned.
func (p *pass) reopen(ctx context.Context, w *work, refusal error) error {
	newest, err := p.objects.Get(ctx, p.key)
	if err != nil {
		return err
	}
	if object.Text(newest, "metadata", "uid") != p.memory.uid {
		return kube.ErrGone
	}
	unchanged := p.exact && version(newest) == p.composed
	if (unchanged || !errors.Is(refusal, kube.ErrConflict)) && !w.refuse(p, refusal) {
		return refusal
	}
	if !unchanged && errors.Is(refusal, kube.ErrConflict) {
		p.meter.Conflict()
	}
	was := p.known()
	if err := p.openRaw(newest); err != nil {
		return err
	}
	if w.intends && p.known() != was && p.stored != w.sent {
		return errOvertaken
	}
	p.plan = p.pure.Decide(p.state()) // What is done is saved, also where a filter cannot tell what is next.
	return nil
}

// send sends what is not sent yet, in at most two requests.
func (p *pass) send(ctx context.Context, w *work) error {
	w.record = w.fold(p.pure, p.plan.Record)
	text, err := w.record.Encode()
	if err != nil {
		return err
	}
	p.composed, w.sent = version(p.base), text
	edits := p.written(w, text)
	p.contend(ctx, edits)
	for _, next := range p.requests(w, text) {
		if next.document.Empty() {
			continue
		}
		answer, err := p.objects.Patch(ctx, p.key, next.subresource, next.document.Operations())
		if err != nil {
			return err
		}
		next.sent()
		p.base, p.exact = answer, true
		p.awaitCache(answer)
		p.memory.over = object.Text(answer, "metadata", "deletionTimestamp") != "" && len(object.List(answer, "metadata", "finalizers")) == 0
		p.tellDropped(w, next, answer)
		p.wrote(answer, edits)
	}
	return nil
}

// requests composes the documents. The record goes last, so that it never says more than what is written; only a
// finalizer goes after it.
func (p *pass) requests(w *work, text string) []request {
	main := request{document: patch.New(p.base), edits: w.rest}
	status := request{subresource: statusResource, document: patch.New(p.base), edits: w.status}
	if !p.description.HasStatus {
		main.edits, status.edits = append(append([]patch.Edit{}, w.rest...), w.status...), nil
	}
	for _, composed := range []*request{&main, &status} {
		for _, edit := range composed.edits {
			composed.document.Edit(edit)
		}
	}
	status.sent = func() {
		w.written, w.status = patch.Apply(w.written, status.edits), nil
	}
	main.sent = func() {
		w.written = patch.Apply(w.written, main.edits)
		if w.rest, w.finalizer = nil, handler.Keep; !p.description.HasStatus {
			w.status = nil
		}
	}
	p.compose(w, text, &main, &status)
	if p.recordResource() == statusResource && !p.removing(w) {
		return []request{main, status}
	}
	return []request{status, main}
}

// compose adds the finalizer and the record to the documents.
func (p *pass) compose(w *work, text string, main, status *request) {
	removing := p.removing(w)
	switch {
	case removing:
		p.log.Info("removing the finalizer", "finalizer", p.settings.Finalizer())
		main.document.RemoveFinalizer(p.settings.Finalizer())
	case w.finalizer == handler.Add:
		p.log.Info("adding the finalizer, so that a deletion waits for the delete handlers",
			"finalizer", p.settings.Finalizer())
		main.document.AddFinalizer(p.settings.Finalizer())
	}
	released := removing && len(object.List(p.base, "metadata", "finalizers")) == 1 && p.plan.Cause == cause.Delete
	if w.keepRecord || released || text == p.stored {
		return
	}
	carrier := main
	if p.recordResource() == statusResource {
		carrier = status
	}
	at := p.description.Carrier.Path(p.settings.Identity)
	carrier.document.Test(at)
	carrier.document.Edit(patch.Edit{Path: at, Value: text})
	sent := carrier.sent
	carrier.sent = func() {
		sent()
		p.memory.record, p.stored = text, text
		p.noteRecorded()
	}
	p.markConditions(w, p.statusOf(main, status).document)
	p.dropOtherCarrier(main, status)
}

// statusOf is the request that carries the status.
func (p *pass) statusOf(main, status *request) *request {
	if p.description.HasStatus {
		return status
	}
	return main
}

// removing tells whether the finalizer goes with this work.
func (p *pass) removing(w *work) bool {
	return w.finalizer == handler.Remove || p.marked() && w.record.Deleted && !p.daemons.hold(p.key, p.memory.uid)
}

// dropOtherCarrier removes a record that an earlier release kept in the other place: one carrier is written.
func (p *pass) dropOtherCarrier(main, status *request) {
	other, found := p.description.Carrier.Other()
	if !found {
		return
	}
	target := main
	if other == record.Status {
		target = p.statusOf(main, status)
	}
	target.document.Edit(patch.Edit{Path: other.Path(p.settings.Identity), Remove: true})
}

// recordResource is the subresource through which the record is written; "" is the object itself.
func (p *pass) recordResource() string {
	if p.description.Carrier == record.Status && p.description.HasStatus {
		return statusResource
	}
	return ""
}

func version(body object.Body) string { return object.Text(body, "metadata", "resourceVersion") }
