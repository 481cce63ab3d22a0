package reconciler

import "github.com/einmal-operators/einmal/internal/edge/kube"

// keepDenied keeps the record of a denied write in memory as the newest one, and reports the denial once. The next pass starts from this record and
// from the object as it is then, so a denial holds back neither a corrected object nor a deletion. See docs/decisions/0003.
func (p *pass) keepDenied(w *work, denial error) {
	hasRecord := w.journal.HasRecord()
	if hasRecord && !w.intends { // Nothing is called for an intent that is not stored, and the handler goes on.
		p.memory.record = w.journal.Text() // mutant: denied-record-forgotten
	}
	p.memory.unsaved = nil
	reason := p.r.Reports.Redact(kube.Refusal(denial), p.seen.Body())
	if reason == p.memory.denied {
		return
	}
	if p.memory.denied = reason; hasRecord {
		p.report.RecordDenied(reason)
	} else {
		p.report.FinalizerDenied(reason)
	}
}
