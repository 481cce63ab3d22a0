package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/journal"
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

// removeFormer removes the record that an earlier release kept in the other carrier, in a request of its own. A failure is no failure of the work, since the
// newer record is read first: another pass tries again.
func (p *pass) removeFormer(ctx context.Context, w *work, target journal.Target) {
	if p.removes(time.Now()) {
		p.memory.removal = time.Time{}
	}
	former, found := p.view.Description.Carrier.Other()
	if !found || p.memory.freshness.over || p.plan.Cause == cause.Free {
		return
	}
	now, left := p.seen.Record(), p.seen.Raw()
	kept := now.InPlace() && object.Text(left, p.view.Description.Carrier.Path(p.r.Settings.Identity)...) == now.Stored()
	if !kept && !w.journal.Unstored() || !record.Usable(object.Text(left, former.Path(p.r.Settings.Identity)...), p.memory.uid) {
		return
	}
	target.Base = left
	removal, edit := target.Former(former)
	p.countConflict(w, []patch.Edit{edit})
	answer, err := p.r.Server.Patch(ctx, p.key, removal.Subresource, removal.Changes.Operations())
	switch {
	case err == nil:
		p.acknowledge(answer, []patch.Edit{edit})
	case !errors.Is(err, kube.ErrGone):
		wait := min(max(2*p.memory.removalWait, firstRemovalRetry), longestRemovalRetry)
		p.report.Log.Warn("cannot remove the record of an earlier release, will retry", "carrier", string(former), "retryIn", wait.String(), "error", p.r.Reports.RedactError(err, p.seen.Body()))
		p.memory.removal, p.memory.removalWait = time.Now().Add(wait), wait // mutant: former-left
	}
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

// concede makes the work smaller after the API server has refused its content. It reports whether there was anything to leave out.
func (p *pass) concede(w *work, refusal error) bool {
	reason := p.r.Reports.Redact(kube.Refusal(refusal), p.seen.Body())
	less, smaller := w.journal.Refused(p.view.Pure, journal.Refusal{
		TooLarge: kube.TooLarge(refusal), Denied: kube.Denied(refusal), Reason: reason,
		Optional: p.seen.Deleting() && !w.intends, Stored: p.seen.Record().Stored(), Now: time.Now(),
	})
	if less.Before > 0 {
		p.report.Log.Warn("record does not fit into the object, storing less of it", "bytes", less.Before, "now", less.After, "stored", !less.Unstored)
	}
	p.rejected(w, less.Rejected, func(made journal.Attempt) { p.report.ChangesRejected(made.Run, made.Result, reason) })
	return smaller
}

// rejected notes attempts whose changes are not written. One that goes on learns of it at its end.
func (p *pass) rejected(w *work, attempts []journal.Attempt, report func(journal.Attempt)) {
	for _, made := range attempts {
		if made.Result.Outcome == record.Pending {
			w.running.TakeBack()
			continue
		}
		delete(p.memory.resumed, made.Run.ID)
		p.remember(made.Run, made.Result, made.Seen)
		report(made)
	}
}

// unfit explains a refusal that is about the size of the record.
func (w *work) unfit(refusal error) error {
	if !kube.TooLarge(refusal) {
		return refusal
	}
	return fmt.Errorf("write a record of %d bytes (make room in the annotations of the object): %w", len(w.journal.Text()), refusal)
}

// rememberUnstored keeps in memory a record that does not fit into an object which is being deleted.
func (p *pass) rememberUnstored(w *work) {
	if w.journal.Unstored() {
		p.memory.record = w.journal.Text()
		p.seen = p.seen.WithRecord(p.seen.Record().NotWritten())
	}
}
