package engine

import (
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// What people see when a record may be older than what handlers did.
const (
	olderReason   = "RecordReplaced"
	olderSentence = "%s has written the record of this object, and the operator has not seen the record before it, so it can be older than what " +
		"the handlers did: handlers can repeat work or miss a change. Check the external systems"
)

// checkWriter looks at who has written the first record that this process reads of an object. One of another client can be older than what
// handlers did. It is used and written again, and the effects that it does not know count as possibly made.
func (p *pass) checkWriter(found record.Stored) {
	if other := p.recordOwners.Other(p.memory.uid, found.From); other != "" && p.memory.record == "" {
		p.memory.othersRecord, p.memory.unsure = found.Text, true
		p.tellWriter(other, found.From)
	}
	if found.Text != p.memory.othersRecord {
		return
	}
	p.record.Writes++
	p.record.Doubted = p.record.Doubted || p.pure.Creating(*p.record)
	p.inPlace = false
}

func (p *pass) tellWriter(other string, from record.Carrier) {
	p.log.Warn("another client has written the record, and the operator has not seen the one before: it can be older than what the handlers did",
		"client", other, "record", from.Path(p.settings.Identity).String())
	if object.Text(p.body, "metadata", "deletionTimestamp") == "" {
		p.warn(olderReason, olderSentence, other)
	}
}
