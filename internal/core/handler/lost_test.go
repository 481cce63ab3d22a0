package handler_test

import (
	"testing"

	"github.com/einmal-operators/einmal/internal/core/cause"
)

func lostLife(t *testing.T) *life {
	l := newLife(t, declared("make", cause.Create), declared("resize", cause.Update), declared("greet", cause.Resume))
	l.resumed["greet"] = true
	l.expect(cause.Create, "make(create, 1)")
	l.stored, l.settled = "", true
	l.restart()
	return l
}

// After a lost record resume handlers run, create handlers do not, and a new record is written.
func TestALostRecordNeverCreates(t *testing.T) {
	l := lostLife(t)
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Lost, "greet(resume, 1)")
	l.expect(cause.Noop)
	l.essence = spec("a", 3, "b", 1)
	l.expect(cause.Update, "resize(update, 1) spec.a:2->3")
}

// The annotation <identity>/recreate: <token> runs the create handlers once per token.
func TestTheWayOutOfALostRecord(t *testing.T) {
	l := lostLife(t)
	l.recreate = "used before, who knows"
	l.expect(cause.Lost, "greet(resume, 1)")
	l.expect(cause.Noop) // A token that existed when the record was lost may have been used.
	l.recreate = "new"
	l.expect(cause.Create, "make(create, 1)?")
	for range 3 {
		l.restart()
		l.resumed["greet"] = true
		l.expect(cause.Noop)
	}
	l.recreate = "newer"
	l.expect(cause.Create, "make(create, 1)?")
	l.recreate = ""
	l.expect(cause.Noop)
}

func TestWithoutAWatermarkAMissingRecordIsACreationThatMayBeARepetition(t *testing.T) {
	l := lostLife(t)
	l.settled, l.inherited = false, true
	l.expect(cause.Create, "make(create, 1)?")
}

func TestALostObjectThatIsBeingDeletedIsDeleted(t *testing.T) {
	l := newLife(t, declared("make", cause.Create), declared("unmake", cause.Delete))
	l.expect(cause.Create, "make(create, 1)")
	l.stored, l.settled, l.deleting = "", true, true
	l.expect(cause.Delete, "unmake(delete, 1)")
}
