package handler_test

import (
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
)

func twoDeletes(t *testing.T) *life {
	return newLife(t, declared("make", cause.Create), declared("one", cause.Delete), declared("two", cause.Delete))
}

func TestDeletionHasItsOwnProgress(t *testing.T) { // docs/concepts/footguns.md, G2; docs/concepts/scenarios.md, 10
	l := twoDeletes(t)
	l.expect(cause.Create, "make(create, 1)")
	l.deleting = true
	l.fail("two", time.Minute)
	l.expect(cause.Delete, "one(delete, 1)", "two(delete, 1)")
	if !l.marked {
		t.Fatal("released too early")
	}
	l.restart()
	l.expect(cause.Delete)
	l.now = l.now.Add(time.Minute)
	l.succeed("two")
	l.expect(cause.Delete, "two(delete, 2)")
	if l.marked {
		t.Error("not released")
	}
	l.expect(cause.Free) // Other finalizers keep the object: nothing runs any more.
}

func TestADeletionDuringThePendingCreation(t *testing.T) { // docs/concepts/scenarios.md, 35
	l := twoDeletes(t)
	l.fail("make", 5*time.Minute)
	l.expect(cause.Create, "make(create, 1)")
	l.deleting = true
	l.expect(cause.Delete, "one(delete, 1)", "two(delete, 1)")
	if l.marked {
		t.Error("not released")
	}
}

func TestADeletionWithoutARecordStillRunsTheHandlers(t *testing.T) {
	l := twoDeletes(t)
	l.marked, l.deleting = true, true
	l.expect(cause.Delete, "one(delete, 1)", "two(delete, 1)")
	if l.marked {
		t.Error("not released")
	}
}

func TestADeletionWhoseFinalizerWasLostStillRunsTheHandlers(t *testing.T) {
	l := twoDeletes(t)
	l.expect(cause.Create, "make(create, 1)")
	l.deleting, l.marked = true, false
	l.expect(cause.Delete, "one(delete, 1)", "two(delete, 1)")
	l.expect(cause.Free)
}

func TestADeleteHandlerThatFailedForGoodKeepsTheObject(t *testing.T) { // docs/concepts/scenarios.md, 18
	l := twoDeletes(t)
	l.expect(cause.Create, "make(create, 1)")
	l.deleting = true
	l.results["one"] = handler.Result{Outcome: record.Failed, Message: "never"}
	l.expect(cause.Delete, "one(delete, 1)", "two(delete, 1)")
	l.restart()
	l.expect(cause.Delete)
	if !l.marked {
		t.Fatal("released")
	}
	l.essence = spec("a", 2, "b", 1)
	l.succeed("one")
	l.expect(cause.Delete, "one(delete, 1)? spec.a:1->2")
	if l.marked {
		t.Error("not released")
	}
}

// The deletion waits for the other delete handlers only. See scenario 18 in docs/concepts/scenarios.md.
func TestAFailedDeleteHandlerWithoutAFinalizerDoesNotBlockTheDeletion(t *testing.T) {
	l := twoDeletes(t)
	l.kind.Handlers[2].Optional = true
	l.expect(cause.Create, "make(create, 1)")
	l.deleting = true
	l.fail("one", time.Minute)
	l.results["two"] = handler.Result{Outcome: record.Failed, Message: "never"}
	l.expect(cause.Delete, "one(delete, 1)", "two(delete, 1)")
	if blocked := l.kind.Blocked(l.record()); len(blocked) != 0 {
		t.Errorf("the deletion is blocked by %q", blocked)
	}
	if !l.marked {
		t.Fatal("released before the handler with a finalizer has finished")
	}
	l.now = l.now.Add(time.Minute)
	l.succeed("one")
	l.expect(cause.Delete, "one(delete, 2)")
	if l.marked || !l.record().Deleted {
		t.Errorf("not released: %s", l.stored)
	}
	l.expect(cause.Free)
}

func TestAFinalizerLeftByAnEarlierReleaseIsRemoved(t *testing.T) { // docs/concepts/scenarios.md, 15
	l := newLife(t, declared("make", cause.Create))
	l.marked = true
	l.expect(cause.Create, "make(create, 1)")
	if l.marked {
		t.Error("the finalizer is still there")
	}
	l.marked, l.deleting = true, true
	l.expect(cause.Delete)
	if l.marked {
		t.Error("the finalizer keeps the object")
	}
}

func TestAReleaseThatWasInterruptedIsFinished(t *testing.T) {
	l := twoDeletes(t)
	l.expect(cause.Create, "make(create, 1)")
	l.deleting = true
	l.expect(cause.Delete, "one(delete, 1)", "two(delete, 1)")
	l.marked = true // The process died after it wrote the record and before it removed the finalizer.
	l.expect(cause.Free)
	if l.marked {
		t.Error("the finalizer is still there")
	}
}

func TestAnObjectThatWasNeverOursIsLeftAlone(t *testing.T) {
	l := twoDeletes(t)
	l.deleting = true
	l.expect(cause.Free)
	if l.writes != 0 {
		t.Errorf("%d writes, want 0", l.writes)
	}
}
