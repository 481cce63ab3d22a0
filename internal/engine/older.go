package engine

import "github.com/einmal-operators/einmal/internal/core/record"

// checkWriter looks at who has written the first record that this process reads of an object. One of another client can be older than what
// handlers did. It is used and written again, and the effects that it does not know count as possibly made.
func (p *pass) checkWriter(found record.Stored) {
	if other := p.recordOwners.Other(p.memory.uid, found.From); other != "" && p.memory.record == "" {
		p.memory.othersRecord, p.memory.unsure = found.Text, true
		p.report.RecordReplaced(other, found.From)
	}
	if found.Text != p.memory.othersRecord {
		return
	}
	p.record.Writes++
	p.record.Doubted = p.record.Doubted || p.pure.Creating(*p.record)
	p.inPlace = false
}
