package reconciler

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// concede makes the work smaller after the API server has refused its content. It reports whether there was anything to leave out.
func (c committer) concede(w *work, refusal error) bool {
	reason := c.s.r.Reports.Redact(kube.Refusal(refusal), c.s.seen.Body())
	less, smaller := w.journal.Refused(c.s.view.Pure, journal.Refusal{
		TooLarge: kube.TooLarge(refusal), Denied: kube.Denied(refusal), Reason: reason,
		Optional: c.s.seen.Deleting() && !w.intends, Stored: c.s.seen.Record().Stored(), Now: time.Now(),
	})
	if less.Before > 0 {
		c.s.report.Log.Warn("record does not fit into the object, storing less of it", "bytes", less.Before, "now", less.After, "stored", !less.Unstored)
	}
	c.rejected(w, less.Rejected, func(made journal.Attempt) { c.s.report.ChangesRejected(made.Run, made.Result, reason) })
	return smaller
}

// rejected notes attempts whose changes are not written. One that goes on learns of it at its end.
func (c committer) rejected(w *work, attempts []journal.Attempt, report func(journal.Attempt)) {
	for _, made := range attempts {
		if made.Result.Outcome == record.Pending {
			w.running.TakeBack()
			continue
		}
		delete(c.s.memory.resumed, made.Run.ID)
		c.s.remember(made.Run, made.Result, made.Seen)
		report(made)
	}
}

// rememberUnstored keeps in memory a record that does not fit into an object which is being deleted.
func (c committer) rememberUnstored(w *work) {
	if w.journal.Unstored() {
		c.s.memory.record = w.journal.Text()
		c.s.seen = c.s.seen.WithRecord(c.s.seen.Record().NotWritten())
	}
}

// keepDenied keeps the record of a denied write in memory as the newest one, and reports the denial once. The next reconciliation starts from this record and
// from the object as it is then, so a denial holds back neither a corrected object nor a deletion. See docs/decisions/0003.
func (c committer) keepDenied(w *work, denial error) {
	hasRecord := w.journal.HasRecord()
	if hasRecord && !w.intends { // Nothing is called for an intent that is not stored, and the handler goes on.
		c.s.memory.record = w.journal.Text() // mutant: denied-record-forgotten
	}
	c.s.memory.unsaved = nil
	reason := c.s.r.Reports.Redact(kube.Refusal(denial), c.s.seen.Body())
	if reason == c.s.memory.denied {
		return
	}
	if c.s.memory.denied = reason; hasRecord {
		c.s.report.RecordDenied(reason)
	} else {
		c.s.report.FinalizerDenied(reason)
	}
}
