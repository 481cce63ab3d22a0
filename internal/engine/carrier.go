package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// How long until another attempt to remove a record from the other carrier: twice as long each time.
const (
	firstRemovalRetry   = 10 * time.Second
	longestRemovalRetry = time.Hour
)

// resourceOf is the subresource through which a carrier is written; "" is the object itself.
func (p *pass) resourceOf(carrier record.Carrier) string {
	if carrier == record.Status && p.description.HasStatus {
		return statusResource
	}
	return ""
}

// recordResource is the subresource through which the record is written.
func (p *pass) recordResource() string { return p.resourceOf(p.description.Carrier) }

// composeRecord adds the record to the document of its carrier, on condition that the carrier holds what was read, and the conditions to that of the status.
func (p *pass) composeRecord(w *work, text string, main, status *document) {
	if !p.description.HasStatus {
		status = main
	}
	carrier := main
	if p.recordResource() == statusResource {
		carrier = status
	}
	at := p.description.Carrier.Path(p.settings.Identity)
	carrier.changes.Test(at) // mutant: record-without-test
	carrier.changes.Edit(patch.Edit{Path: at, Value: text, Remove: w.reduction == handler.NotStored})
	carrier.record = w.reduction < handler.NotStored
	p.markConditions(w, status.changes)
}

// removeFormer sends the third document, if there is one. A failure is no failure of the work, since the newer record is read first: another pass
// tries again.
func (p *pass) removeFormer(ctx context.Context, w *work) {
	if p.removes(time.Now()) {
		p.memory.removal = time.Time{}
	}
	former, found := p.description.Carrier.Other()
	if !found {
		return
	}
	removal, found := p.formerDocument(w, former)
	if !found {
		return
	}
	p.countConflict(w, removal.edits)
	answer, err := p.objects.Patch(ctx, p.key, removal.subresource, removal.changes.Operations())
	switch {
	case err == nil:
		p.base, p.exact = answer, true
		p.acknowledge(answer, removal.edits)
	case !errors.Is(err, kube.ErrGone):
		wait := min(max(2*p.memory.removalWait, firstRemovalRetry), longestRemovalRetry)
		p.report.Log.Warn("cannot remove the record of an earlier release, will retry", "carrier", string(former), "retryIn", wait.String(), "error", p.reports.RedactError(err, p.body))
		p.memory.removal, p.memory.removalWait = time.Now().Add(wait), wait // mutant: former-left
	}
}

// formerDocument composes the document that removes the record which an earlier release kept in the other carrier. It is sent once the API server is
// known to hold the newer one: a crash or a refusal in between leaves both.
func (p *pass) formerDocument(w *work, former record.Carrier) (removal document, found bool) {
	if p.memory.over || p.plan.Cause == cause.Free {
		return document{}, false
	}
	preferred, at := p.description.Carrier.Path(p.settings.Identity), former.Path(p.settings.Identity)
	kept := p.inPlace && object.Text(p.base, preferred...) == p.stored
	if !kept && w.reduction < handler.NotStored || !record.Usable(object.Text(p.base, at...), p.memory.uid) {
		return document{}, false
	}
	removal = document{subresource: p.resourceOf(former), changes: patch.New(p.base), edits: []patch.Edit{{Path: at, Remove: true}}}
	removal.changes.Test(preferred)
	removal.changes.Test(at)
	removal.changes.Edit(removal.edits[0])
	return removal, true
}

// removes reports whether it is time to try again to remove the record in the other carrier.
func (p *pass) removes(now time.Time) bool {
	return !p.memory.removal.IsZero() && !now.Before(p.memory.removal)
}

// withRemoval returns when to look again, given when there is something else to do.
func (p *pass) withRemoval(wake time.Time) time.Time {
	if due := p.memory.removal; !due.IsZero() && (wake.IsZero() || due.Before(wake)) {
		return due
	}
	return wake
}

// concede makes the work smaller after the API server has refused its content: the record, where the object would be too
// large with it; else conditions of the framework are left out, then the handlers' changes are given up, and the record comes
// last. It reports whether there was anything to leave out.
func (p *pass) concede(w *work, refusal error) bool {
	if kube.TooLarge(refusal) && p.reduce(w) {
		return true
	}
	if w.dropConditions() {
		return true
	}
	if w.refuse(p, refusal) {
		w.reduction, w.withoutConditions = handler.Complete, false // They may not be the cause.
		return true
	}
	return !kube.Denied(refusal) && p.reduce(w)
}

// reduce leaves out more of the record, until it is smaller than the one that was sent. A record is not stored at all only
// where it would block a deletion, and never while an effect waits for its intent.
func (p *pass) reduce(w *work) bool {
	if w.keepRecord || w.sent == p.stored {
		return false // No record was sent.
	}
	most := handler.WithoutMessages
	if object.Text(p.body, "metadata", "deletionTimestamp") != "" && !w.intends {
		most = handler.NotStored // mutant: record-blocks-deletion
	}
	for w.reduction < most {
		w.reduction++ // mutant: record-not-reduced
		text, err := p.pure.Reduce(w.record, w.reduction).Encode()
		if err == nil && (len(text) < len(w.sent) || w.reduction == handler.NotStored) {
			p.report.Log.Warn("record does not fit into the object, storing less of it", "bytes", len(w.sent), "now", len(text),
				"stored", w.reduction < handler.NotStored)
			return true
		}
	}
	return false
}

// unfit explains a refusal that is about the size of the record.
func (w *work) unfit(refusal error) error {
	if !kube.TooLarge(refusal) {
		return refusal
	}
	return fmt.Errorf("write a record of %d bytes (make room in the annotations of the object): %w", len(w.sent), refusal)
}

// rememberUnstored keeps in memory a record that does not fit into an object which is being deleted.
func (p *pass) rememberUnstored(w *work, text string) {
	if w.reduction == handler.NotStored {
		p.memory.record, p.stored, p.inPlace = text, "", false
	}
}
