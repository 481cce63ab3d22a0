package engine

import "github.com/einmal-operators/einmal/internal/core/object"

// What people see when a record may be older than what handlers did.
const (
	olderReason   = "RecordReplaced"
	olderSentence = "%s has written the record of this object while the operator was down, so the record can be older than what the handlers did: " +
		"handlers can repeat work or miss a change. Check the external systems"
)

// checkWriter looks at who has written the first record that this process reads of an object. One of another client can be older than what
// handlers did. It is used and written again, and the effects that it does not know count as possibly made.
func (p *pass) checkWriter(text string) {
	if other := p.recordOwners.Other(p.memory.uid); other != "" && p.memory.record == "" {
		p.memory.othersRecord, p.memory.unsure = text, true
		p.tellWriter(other)
	}
	if text != p.memory.othersRecord {
		return
	}
	p.record.Writes++
	p.record.Doubted = p.record.Doubted || p.pure.Creating(*p.record)
	p.inPlace = false
}

func (p *pass) tellWriter(other string) {
	p.log.Warn("record was written by another client while the operator was down, it can be older than what the handlers did",
		"client", other, "record", p.description.Carrier.Path(p.settings.Identity).String())
	if object.Text(p.body, "metadata", "deletionTimestamp") == "" {
		p.warn(olderReason, olderSentence, other)
	}
}
