package handler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// What a creation means while the object, the record and the handlers change.

func TestACreateHandlerThatSucceededNeverRunsAgain(t *testing.T) {
	l := newLife(t, declared("make", cause.Create))
	l.expect(cause.Create, "make(create, 1)")
	for range 3 {
		l.restart()
		l.expect(cause.Noop)
	}
	l.essence = spec("a", 9)
	l.expect(cause.Noop)
	if l.writes != 1 {
		t.Errorf("%d writes, want 1", l.writes)
	}
}

func TestAPendingCreationIsRetriedWithTheNewestObjectReasonCreate(t *testing.T) { // docs/concepts/scenarios.md, 34
	l := newLife(t, declared("make", cause.Create), declared("resize", cause.Update))
	l.fail("make", time.Minute)
	l.expect(cause.Create, "make(create, 1)")
	l.expect(cause.Create) // The backoff has not ended.
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Create, "make(create, 2)") // An edit of its view ends the backoff; attempts are still counted.
	l.now = l.now.Add(time.Minute)
	l.succeed("make")
	l.expect(cause.Create, "make(create, 3)")
	l.expect(cause.Noop)
}

func TestAnEditDoesNotEndAWaitThatTheHandlerAskedFor(t *testing.T) {
	l := newLife(t, declared("make", cause.Create))
	l.results["make"] = handler.Result{Outcome: record.Retry, Delay: time.Hour, Asked: true}
	l.expect(cause.Create, "make(create, 1)")
	l.essence = spec("a", 2)
	l.expect(cause.Create)
	l.now = l.now.Add(time.Hour)
	l.expect(cause.Create, "make(create, 2)")
}

func TestACreationThatFailedForGoodRunsAgainWhenItsViewChanges(t *testing.T) {
	l := newLife(t, declared("make", cause.Create, "spec.a"), declared("resize", cause.Update, "spec.b"))
	l.results["make"] = handler.Result{Outcome: record.Failed, Message: "never"}
	l.expect(cause.Create, "make(create, 1)")
	l.restart()
	l.expect(cause.Noop)
	l.essence = spec("a", 1, "b", 2)
	l.expect(cause.Update, "resize(update, 1) spec.b:1->2")
	l.essence = spec("a", 2, "b", 2)
	l.succeed("make")
	l.expect(cause.Create, "make(create, 1)?") // Attempts are counted from 1 again, but MaybeRepeated is set.
	l.expect(cause.Noop)
}

func TestUpdatesWaitForTheCreationAndSeeItsOldestSuccess(t *testing.T) {
	l := newLife(t, declared("first", cause.Create), declared("second", cause.Create), declared("resize", cause.Update, "spec.a"))
	l.fail("second", time.Second)
	l.expect(cause.Create, "first(create, 1)", "second(create, 1)")
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Create, "second(create, 2)")
	l.now = l.now.Add(time.Second)
	l.succeed("second")
	l.expect(cause.Create, "second(create, 3)")
	l.expect(cause.Update, "resize(update, 1) spec.a:1->2") // From what the first handler saw to the current state.
	l.expect(cause.Noop)
	if n := len(l.record().Seen); n != 1 {
		t.Errorf("a closed record keeps %d essences, want 1", n)
	}
}

func TestOtherHandlersAreNotRepeatedAfterAKillBetweenThem(t *testing.T) { // docs/concepts/scenarios.md, 27
	l := newLife(t, declared("first", cause.Create), declared("second", cause.Create))
	l.fail("second", time.Minute)
	l.expect(cause.Create, "first(create, 1)", "second(create, 1)")
	l.restart()
	l.expect(cause.Create)
	l.now = l.now.Add(59 * time.Second)
	l.expect(cause.Create) // It waits only for the rest of the time.
	l.now = l.now.Add(time.Second)
	l.succeed("second")
	l.expect(cause.Create, "second(create, 2)")
}

func TestHandlersAddedByAnUpgrade(t *testing.T) {
	l := newLife(t, declared("make", cause.Create), declared("resize", cause.Update, "spec.a"))
	l.expect(cause.Create, "make(create, 1)")
	l.kind.Handlers = append(l.kind.Handlers,
		declared("make-more", cause.Create), declared("recolor", cause.Update, "spec.b"), declared("unmake", cause.Delete))
	l.restart()
	l.expect(cause.Noop) // A new create handler counts as finished; a new delete handler adds the finalizer.
	if !l.marked {
		t.Error("the delete handler has no finalizer")
	}
	l.essence = spec("a", 1, "b", 2)
	l.expect(cause.Update, "recolor(update, 1) spec.b:1->2") // A new update handler starts from what was last seen.
	l.expect(cause.Noop)
}

func TestRemovedHandlersLeaveTheRecord(t *testing.T) { // docs/concepts/scenarios.md, 36
	l := newLife(t, declared("make", cause.Create), declared("old", cause.Update, "spec.a"))
	l.expect(cause.Create, "make(create, 1)")
	l.results["old"] = handler.Result{Outcome: record.Failed}
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Update, "old(update, 1) spec.a:1->2")
	if _, kept := l.record().Handlers["old"]; !kept {
		t.Fatal("the failure is not recorded")
	}
	l.kind.Handlers = []handler.Declaration{declared("make", cause.Create), declared("resize", cause.Update)}
	l.expect(cause.Noop)
	l.essence = spec("a", 3, "b", 1)
	l.expect(cause.Update, "resize(update, 1) spec.a:2->3")
	if handlers := l.record().Handlers; len(handlers) != 0 {
		t.Errorf("the record still holds %v", handlers)
	}
}

func TestWaitingIsWrittenOnceAndCountsNoAttempt(t *testing.T) { // docs/concepts/scenarios.md, 29
	l := newLife(t, declared("make", cause.Create))
	l.results["make"] = handler.Result{Outcome: record.Waiting, Delay: time.Minute, Asked: true}
	want := "make(create, 1)"
	for range 120 {
		l.expect(cause.Create, want)
		l.now = l.now.Add(time.Minute)
		l.waits["make"] = l.now
		want = "make(create, 1)?" // It may have started something that it waits for.
	}
	if l.writes != 1 {
		t.Errorf("%d writes in two hours of waiting, want 1", l.writes)
	}
	l.succeed("make")
	l.expect(cause.Create, want)
	if l.writes != 2 {
		t.Errorf("%d writes, want 2", l.writes)
	}
}

func TestAnObjectWithoutCreateHandlersIsRecordedOnce(t *testing.T) {
	l := newLife(t, declared("resize", cause.Update))
	l.expect(cause.Create)
	l.expect(cause.Noop)
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Update, "resize(update, 1) spec.a:1->2")
	l.expect(cause.Noop)
	if l.writes != 2 {
		t.Errorf("%d writes, want 2", l.writes)
	}
}

// When two processes handle one creation, an unfinished attempt does not reopen what the other process has finished.
func TestAnAttemptThatIsOvertakenOpensNothingAgain(t *testing.T) {
	kind := handler.Kind{Handlers: []handler.Declaration{declared("make", cause.Create), declared("more", cause.Create)}}
	essence, now := spec("a", 1), time.Unix(0, 0)
	runs := kind.Decide(handler.State{UID: "uid", Essence: essence, Now: now}).Runs
	begun := record.Record{UID: "uid"}
	half := kind.Settle(kind.Fold(begun, runs[0], handler.Result{Outcome: record.Done}, essence, now), essence)
	closed := kind.Settle(kind.Fold(half, runs[1], handler.Result{Outcome: record.Done}, essence, now), essence)
	for name, finished := range map[string]record.Record{"while others go on": half, "when all are done": closed} {
		for _, outcome := range []record.Outcome{record.Retry, record.Waiting, record.Failed, record.Pending} {
			late := kind.Settle(kind.Fold(finished, runs[0], handler.Result{Outcome: outcome, Delay: time.Minute}, essence, now), essence)
			if diff := cmp.Diff(finished, late); diff != "" {
				t.Errorf("%s, one that ends as %s changes the record (-want +got):\n%s", name, outcome, diff)
			}
		}
	}
}
