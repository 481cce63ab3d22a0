package handler

import (
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Reduction is how much of a record is left out so that it fits into its object.
type Reduction int

// The reductions; each leaves out more than the one before. Complete leaves out nothing. DigestsOnly keeps digests in place
// of essences, so that update handlers have no old state to compare with. WithoutMessages leaves out error texts too.
// NotStored stores no record: the process alone remembers it. That is for deletions, which a record must never block.
const (
	Complete Reduction = iota
	DigestsOnly
	WithoutMessages
	NotStored
)

// Reduce returns the record as it is after the reduction.
func (k Kind) Reduce(r record.Record, by Reduction) record.Record {
	if by >= DigestsOnly {
		r = r.WithoutBodies(func(essence object.Body) map[string]string { return k.viewDigests(r.UID, essence) })
	}
	if by >= WithoutMessages {
		r = r.WithoutMessages()
	}
	return r
}
