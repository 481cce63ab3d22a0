package handler_test

import (
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

func twoUpdates(t *testing.T) *life {
	l := newLife(t, declared("one", cause.Update), declared("two", cause.Update))
	l.expect(cause.Create)
	l.writes = 0
	return l
}

func TestAChangeInNoViewRunsAndWritesNothing(t *testing.T) {
	l := newLife(t, declared("resize", cause.Update, "spec.a"))
	l.expect(cause.Create)
	l.writes = 0
	l.essence = spec("a", 1, "b", 2)
	l.expect(cause.Noop)
	if l.writes != 0 {
		t.Errorf("%d writes, want 0", l.writes)
	}
	l.essence = spec("a", 2, "b", 2)
	l.expect(cause.Update, "resize(update, 1) spec.a:1->2") // The next Old of its own field is correct.
}

func TestAChangeTakenBackWhileDownRunsNothing(t *testing.T) { // docs/concepts/scenarios.md, 5
	l := twoUpdates(t)
	l.essence = spec("a", 2, "b", 1)
	l.essence = spec("a", 1, "b", 1)
	l.restart()
	l.expect(cause.Noop)
	if l.writes != 0 {
		t.Errorf("%d writes, want 0", l.writes)
	}
}

func TestAHandlerThatFinishedEarlyStillSeesALaterChange(t *testing.T) { // docs/concepts/footguns.md, G1; docs/concepts/scenarios.md, 32
	l := twoUpdates(t)
	l.fail("two", time.Minute)
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Update, "one(update, 1) spec.a:1->2", "two(update, 1) spec.a:1->2")
	l.essence = spec("a", 3, "b", 1)
	l.expect(cause.Update, "one(update, 1) spec.a:2->3", "two(update, 2) spec.a:1->3")
	l.now = l.now.Add(time.Minute)
	l.succeed("two")
	l.expect(cause.Update, "two(update, 3) spec.a:1->3")
	l.expect(cause.Noop)
	if r := l.record(); len(r.Seen) != 1 || len(r.Handlers) != 0 {
		t.Errorf("the record is not closed: %+v", r)
	}
}

func TestAChangeDuringALongHandlerIsSeenAfterwards(t *testing.T) { // docs/concepts/scenarios.md, 31
	l := newLife(t, declared("one", cause.Update, "spec.a"))
	l.expect(cause.Create)
	l.essence = spec("a", 2)
	l.during = func(string) { l.essence = spec("a", 3) }
	l.expect(cause.Update, "one(update, 1) spec.a:1->2")
	l.during = nil
	l.expect(cause.Update, "one(update, 1) spec.a:2->3")
	l.expect(cause.Noop)
}

func TestAnUpdateTakenBackDuringItsRetriesIsForgotten(t *testing.T) {
	l := twoUpdates(t)
	l.fail("two", 5*time.Minute)
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Update, "one(update, 1) spec.a:1->2", "two(update, 1) spec.a:1->2")
	l.essence = spec("a", 1, "b", 1)
	l.expect(cause.Update, "one(update, 1) spec.a:2->1")
	l.expect(cause.Noop)
	l.succeed("two")
	l.essence = spec("a", 5, "b", 1)
	l.expect(cause.Update, "one(update, 1) spec.a:1->5", "two(update, 1) spec.a:1->5")
}

func TestAPermanentFailureIsNotRetriedUntilTheNextChange(t *testing.T) { // docs/concepts/scenarios.md, 23
	l := twoUpdates(t)
	l.results["one"] = handler.Result{Outcome: record.Failed, Message: "never"}
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Update, "one(update, 1) spec.a:1->2", "two(update, 1) spec.a:1->2")
	l.restart()
	l.now = l.now.Add(time.Hour)
	l.expect(cause.Noop)
	l.succeed("one")
	l.essence = spec("a", 3, "b", 1)
	l.expect(cause.Update, "one(update, 1) spec.a:2->3", "two(update, 1) spec.a:2->3")
	if handlers := l.record().Handlers; len(handlers) != 0 {
		t.Errorf("the failure is still recorded: %v", handlers)
	}
}

func TestResumeHandlersRunOncePerProcess(t *testing.T) { // docs/concepts/scenarios.md, 3
	l := newLife(t, declared("make", cause.Create), declared("greet", cause.Resume))
	l.resumed["greet"] = true // The engine sets this for objects whose creation it handles.
	l.expect(cause.Create, "make(create, 1)")
	l.expect(cause.Noop)
	l.restart()
	l.expect(cause.Resume, "greet(resume, 1)")
	l.expect(cause.Noop)
	if l.writes != 1 {
		t.Errorf("%d writes, want 1: a successful resume writes nothing", l.writes)
	}
	l.restart()
	l.fail("greet", time.Second)
	l.expect(cause.Resume, "greet(resume, 1)")
	l.restart()
	l.now = l.now.Add(time.Second)
	l.succeed("greet")
	l.expect(cause.Resume, "greet(resume, 2)") // Its attempts are recorded.
	l.expect(cause.Noop)
}

func TestAResumeMixesIntoAnUpdate(t *testing.T) {
	l := newLife(t, declared("greet", cause.Resume), declared("resize", cause.Update))
	l.resumed["greet"] = true
	l.expect(cause.Create)
	l.restart()
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Update, "greet(resume, 1) spec.a:1->2", "resize(update, 1) spec.a:1->2")
	l.expect(cause.Noop)
}

func TestNormalizedEssencesAreCompared(t *testing.T) { // A new field with a zero value is not a change.
	l := newLife(t, declared("resize", cause.Update))
	l.expect(cause.Create)
	l.kind.Normalize = func(kept object.Body) object.Body {
		return object.With(kept, object.Path{"spec", "new"}, "")
	}
	l.essence = spec("a", 1, "b", 1, "new", "")
	l.restart()
	l.expect(cause.Noop)
	l.essence = spec("a", 1, "b", 1, "new", "set")
	if got, runs := l.pass(); got != cause.Update || len(runs) != 1 {
		t.Errorf("a real change: %s, %v", got, runs)
	}
}

func TestOfALargeEssenceChangesAreStillSeen(t *testing.T) { // docs/concepts/footguns.md, G6
	l := newLife(t, declared("resize", cause.Update, "spec.a"), declared("all", cause.Update))
	noise := make([]byte, 0, 2*record.EssenceLimit)
	for state := uint32(1); len(noise) < cap(noise); state = state*1664525 + 1013904223 {
		noise = append(noise, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-"[state>>26])
	}
	l.essence = spec("a", 1, "noise", string(noise))
	l.expect(cause.Create)
	l.restart()
	l.expect(cause.Noop)
	l.essence = spec("a", 2, "noise", string(noise))
	l.expect(cause.Update, "resize(update, 1)", "all(update, 1)") // Without Old, which was too large to store.
	l.expect(cause.Noop)
	l.kind.Handlers = append(l.kind.Handlers, declared("new", cause.Update))
	l.expect(cause.Noop)
	l.essence = spec("a", 2)
	l.expect(cause.Update, "all(update, 1)", "new(update, 1)")
	l.expect(cause.Noop)
	if size := len(l.stored); size > 1<<10 {
		t.Errorf("the record has %d bytes", size)
	}
}
