package reconciler

import (
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/core/seen"
)

// checkWriter looks at who has written the first record that this process reads of an object. One of another client can be older than what
// handlers did. It is used and written again, and the effects that it does not know count as possibly made.
func (p *pass) checkWriter(chosen seen.Record, found record.Stored) seen.Record {
	if other := p.r.RecordOwners.Other(p.memory.uid, found.From); other != "" && p.memory.record == "" {
		p.memory.othersRecord, p.memory.unsure = found.Text, true
		p.report.RecordReplaced(other, found.From)
	}
	if found.Text == p.memory.othersRecord {
		return chosen.Newer().Doubted(p.view.Pure.Creating(*found.Record))
	}
	return chosen
}

// doubtResults uses a record of which only the progress is read. What its steps and effects returned is not known, so effects count as possibly
// made.
func (p *pass) doubtResults(chosen seen.Record, found record.Stored) seen.Record {
	if p.memory.othersRecord != found.Text {
		p.memory.othersRecord, p.memory.unsure = found.Text, true
		p.report.Log.Warn("nothing says that an earlier release kept records here, so any client may have written this one: only which handlers have finished is used of it",
			"record", found.From.Path(p.r.Settings.Identity).String())
	}
	return chosen.Doubted(p.view.Pure.Creating(*found.Record))
}
