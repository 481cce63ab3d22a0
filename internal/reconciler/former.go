package reconciler

import (
	"context"
	"errors"
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
// newer record is read first: another reconciliation tries again.
func (c committer) removeFormer(ctx context.Context, w *work, target journal.Target) {
	if c.s.memory.removes(time.Now()) {
		c.s.memory.removal = time.Time{}
	}
	former, found := c.s.view.Description.Carrier.Other()
	if !found || c.s.memory.freshness.over || c.s.plan.Cause == cause.Free {
		return
	}
	now, left := c.s.seen.Record(), c.s.seen.Raw()
	kept := now.InPlace() && object.Text(left, c.s.view.Description.Carrier.Path(c.s.r.Settings.Identity)...) == now.Stored()
	if !kept && !w.journal.Unstored() || !record.Usable(object.Text(left, former.Path(c.s.r.Settings.Identity)...), c.s.memory.uid) {
		return
	}
	target.Base = left
	removal, edit := target.Former(former)
	c.countConflict(w, []patch.Edit{edit})
	answer, err := c.s.r.Server.Patch(ctx, c.s.key, removal.Subresource, removal.Changes.Operations())
	switch {
	case err == nil:
		c.acknowledge(answer, []patch.Edit{edit})
	case !errors.Is(err, kube.ErrGone):
		wait := min(max(2*c.s.memory.removalWait, firstRemovalRetry), longestRemovalRetry)
		c.s.report.Log.Warn("cannot remove the record of an earlier release, will retry", "carrier", string(former), "retryIn", wait.String(), "error", c.s.r.Reports.RedactError(err, c.s.seen.Body()))
		c.s.memory.removal, c.s.memory.removalWait = time.Now().Add(wait), wait // mutant: former-left
	}
}

// beginMove stores where the record is going to be.
func (c committer) beginMove(ctx context.Context) error {
	return c.s.r.Store.BeginMove(ctx, c.s.key.Namespace, c.s.view.Description.Carrier, c.s.view.HidesRecords)
}
