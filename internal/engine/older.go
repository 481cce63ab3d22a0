package engine

import (
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// checkWriter looks at who has written the first record that this process reads of an object. One of another client can be older than what
// handlers did. It is used and written again, and the effects that it does not know count as possibly made.
func (p *pass) checkWriter(found record.Stored) {
	if other := p.recordOwners.Other(p.memory.uid, found.From); other != "" && p.memory.record == "" {
		p.memory.othersRecord, p.memory.unsure = found.Text, true
		p.report.RecordReplaced(other, found.From)
	}
	if found.Text == p.memory.othersRecord {
		p.record.Writes++
		p.doubt()
	}
}

// checkDeleted corrects a record which says that the delete handlers have finished, although the object is not being deleted. Another client has
// written it, since no deletion is taken back.
func (p *pass) checkDeleted() {
	if p.record != nil && p.record.Deleted && object.Text(p.body, "metadata", "deletionTimestamp") == "" { // mutant: deleted-believed
		p.record.Deleted, p.inPlace = false, false
		p.record.Writes++
	}
}

// doubtResults uses a record of which only the progress is read. What its steps and effects returned is not known, so effects count as possibly
// made.
func (p *pass) doubtResults(found record.Stored) {
	if p.memory.othersRecord != found.Text {
		p.memory.othersRecord, p.memory.unsure = found.Text, true
		p.report.Log.Warn("nothing says that an earlier release kept records here, so any client may have written this one: only which handlers have finished is used of it",
			"record", found.From.Path(p.settings.Identity).String())
	}
	p.doubt()
}

// doubt makes the record one that is written again, and whose open creation may have run before.
func (p *pass) doubt() {
	p.record.Doubted = p.record.Doubted || p.pure.Creating(*p.record)
	p.inPlace = false
}
