package handler

import (
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Reduction says how much of a record is left out so that the object is not too large.
type Reduction int

// The reductions. Each leaves out more than the one before. Complete leaves out nothing. DigestsOnly stores digests in place of
// essences, so that update handlers have no old state to compare with. WithoutMessages also leaves out error texts. NotStored stores
// no record at all and keeps it in memory. It is meant for deletions, which a record must never block.
const (
	Complete Reduction = iota
	DigestsOnly
	WithoutMessages
	NotStored
)

// Reduce returns the record after the reduction.
func (k Kind) Reduce(r record.Record, by Reduction) record.Record {
	if by >= DigestsOnly {
		r = r.WithoutBodies(func(essence object.Body) map[string]string { return k.viewDigests(r.UID, essence) })
	}
	if by >= WithoutMessages {
		r = r.WithoutMessages()
	}
	return r
}
