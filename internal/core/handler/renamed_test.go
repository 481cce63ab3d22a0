package handler_test

import (
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
)

func formerly(former string, renamed handler.Declaration) handler.Declaration {
	renamed.Former = []string{"long-ago", former}
	return renamed
}

func TestARenamedHandlerTakesItsRecordOver(t *testing.T) { // docs/concepts/scenarios.md, 37
	for _, verb := range []cause.Cause{cause.Create, cause.Update, cause.Delete} {
		t.Run(string(verb), func(t *testing.T) {
			l := newLife(t, declared("keep", cause.Create), declared("old", verb), declared("see", cause.Update))
			if verb != cause.Create {
				l.pass()
			}
			l.essence, l.deleting = spec("a", 2), verb == cause.Delete
			l.fail("old", time.Minute)
			l.pass()
			l.kind.Handlers[1] = formerly("old", declared("new", verb))
			l.restart()
			written := l.writes
			l.expect(verb)
			if l.writes != written {
				t.Error("a rename alone caused a write")
			}
			l.now = l.now.Add(time.Minute)
			l.fail("new", time.Minute)
			if _, runs := l.pass(); len(runs) != 1 || runs[0][:len("new(")] != "new(" {
				t.Fatalf("runs: %q", runs)
			}
			entries := l.record().Handlers
			if _, left := entries["old"]; left || entries["new"].Attempts != 2 {
				t.Errorf("recorded: %+v", entries)
			}
		})
	}
}

func TestARecordOfAnotherVerbIsNotTakenOver(t *testing.T) {
	l := newLife(t, declared("old", cause.Create))
	l.fail("old", time.Minute)
	l.expect(cause.Create, "old(create, 1)")
	l.kind.Handlers = []handler.Declaration{formerly("old", declared("new", cause.Update))}
	l.expect(cause.Noop)
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Update, "new(update, 1) spec.a:1->2")
}

// Of Secrets and large objects only digests are stored, by handler.
func TestARenamedHandlerKnowsItsDigests(t *testing.T) { // docs/concepts/scenarios.md, 37
	l := newLife(t, declared("old", cause.Update, "spec.a"))
	l.kind.Digests = object.Keyed([]byte("a key"))
	l.expect(cause.Create)
	l.kind.Handlers = []handler.Declaration{formerly("old", declared("new", cause.Update, "spec.a"))}
	written := l.writes
	l.expect(cause.Noop)
	if l.writes != written {
		t.Error("a rename alone caused a write")
	}
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Update, "new(update, 1)")
	l.expect(cause.Noop)
}

// The entry of a removed handler is dropped at the next write.
func TestARecordOfARemovedHandlerIsCleanedUpEventually(t *testing.T) { // docs/concepts/scenarios.md, 36
	l := newLife(t, declared("keep", cause.Update, "spec.a"), declared("gone", cause.Update, "spec.b"))
	l.expect(cause.Create)
	l.essence = spec("a", 1, "b", 2)
	l.fail("gone", time.Minute)
	l.expect(cause.Update, "gone(update, 1) spec.b:1->2")
	l.kind.Handlers = l.kind.Handlers[:1]
	l.restart()
	written := l.writes
	l.now = l.now.Add(time.Hour)
	l.expect(cause.Noop)
	if l.writes != written {
		t.Error("a removed handler alone caused a write")
	}
	l.essence = spec("a", 2, "b", 2)
	l.expect(cause.Update, "keep(update, 1) spec.a:1->2")
	if entries := l.record().Handlers; len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}
}

// A creation whose handlers were removed has ended. The current content counts as seen, and only later changes are changes.
func TestACreationWhoseHandlersAreGoneIsClosed(t *testing.T) { // docs/concepts/scenarios.md, 36
	l := newLife(t, declared("gone", cause.Create), declared("resize", cause.Update))
	l.fail("gone", 5*time.Minute)
	l.expect(cause.Create, "gone(create, 1)")
	l.kind.Handlers = l.kind.Handlers[1:]
	l.expect(cause.Noop)
	l.essence = spec("a", 2, "b", 1)
	l.expect(cause.Update, "resize(update, 1) spec.a:1->2")
	if left := l.record().Handlers; len(left) != 1 || !left["gone"].Late { // A release that declares the handler again continues it.
		t.Errorf("left: %s", l.stored)
	}
}
