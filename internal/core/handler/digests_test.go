package handler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

func key(letter string) object.Digester { return object.Keyed([]byte(strings.Repeat(letter, 32))) }

// secretLife returns the life of an object of which only keyed digests are stored.
func secretLife(t *testing.T, handlers ...handler.Declaration) *life {
	l := newLife(t, handlers...)
	l.kind.Digests = key("a")
	l.essence = secret("hunter2")
	return l
}

func secret(password string) object.Body {
	return object.Body{"data": object.Body{"password": password, "user": "app"}, "type": "Opaque"}
}

// shows fails if the record contains the password, or a digest that allows guessing it.
func (l *life) shows(password string) {
	l.t.Helper()
	essence := secret(password)
	for _, value := range []any{essence, essence["data"], password, object.Body{"data": object.Body{"password": password}}} {
		if strings.Contains(l.stored, object.Digest(value)) {
			l.t.Errorf("the plain digest of %v is in the record: %s", value, l.stored)
		}
	}
	if strings.Contains(l.stored, password) {
		l.t.Errorf("the value is in the record: %s", l.stored)
	}
}

func TestOfASecretOnlyKeyedDigestsAreKept(t *testing.T) {
	l := secretLife(t, declared("make", cause.Create), declared("rotate", cause.Update, "data.password"), declared("all", cause.Update))
	l.expect(cause.Create, "make(create, 1)")
	l.shows("hunter2")
	l.restart()
	l.expect(cause.Noop)
	if l.writes != 1 {
		t.Errorf("%d writes, want 1", l.writes)
	}
	l.essence = secret("hunter3")
	l.expect(cause.Update, "rotate(update, 1)", "all(update, 1)") // Without Old, which is never stored.
	l.expect(cause.Noop)
	l.shows("hunter3")
	l.fail("rotate", time.Minute)
	l.essence = secret("hunter4")
	l.expect(cause.Update, "rotate(update, 1)", "all(update, 1)")
	l.restart()
	l.expect(cause.Update)
	l.now = l.now.Add(time.Minute)
	l.succeed("rotate")
	l.expect(cause.Update, "rotate(update, 2)")
	l.expect(cause.Noop)
	l.shows("hunter4")
}

func TestALostRecordOfASecretNeverCreates(t *testing.T) {
	l := secretLife(t, declared("make", cause.Create), declared("rotate", cause.Update))
	l.expect(cause.Create, "make(create, 1)")
	l.stored, l.settled = "", true
	l.expect(cause.Lost)
	l.shows("hunter2")
	l.essence = secret("hunter3")
	l.expect(cause.Update, "rotate(update, 1)")
}

// After the key was lost or replaced no digest can be compared. That is not a reason to run a handler.
func TestWithAnotherKeyNothingRuns(t *testing.T) {
	l := secretLife(t, declared("make", cause.Create), declared("rotate", cause.Update), declared("greet", cause.Resume))
	l.resumed["greet"] = true
	l.expect(cause.Create, "make(create, 1)")
	l.essence = secret("changed while down")
	l.kind.Digests = key("b")
	l.restart()
	l.writes = 0
	l.expect(cause.Resume, "greet(resume, 1)")
	if l.writes != 1 {
		t.Errorf("%d writes, want 1", l.writes)
	}
	l.expect(cause.Noop)
	if l.shows("changed while down"); l.writes != 1 || len(l.record().Seen) != 1 {
		t.Errorf("%d writes, want 1: %s", l.writes, l.stored)
	}
	l.essence = secret("hunter3")
	l.expect(cause.Update, "rotate(update, 1)")
	l.expect(cause.Noop)
}

func TestWithAnotherKeyACreationGoesOnAsItWas(t *testing.T) {
	l := secretLife(t, declared("make", cause.Create), declared("other", cause.Create), declared("rotate", cause.Update))
	l.fail("make", 5*time.Minute)
	l.expect(cause.Create, "make(create, 1)", "other(create, 1)")
	l.kind.Digests = key("b")
	l.restart()
	l.expect(cause.Create) // The backoff does not end, and the finished handler does not run.
	l.now = l.now.Add(time.Hour)
	l.results["make"] = handler.Result{Outcome: record.Failed}
	l.expect(cause.Create, "make(create, 2)")
	l.kind.Digests = key("c")
	l.expect(cause.Noop) // A permanent failure stays final.
	l.succeed("make")
	l.essence = secret("hunter3")
	l.expect(cause.Create, "make(create, 1)?")
	l.expect(cause.Update, "rotate(update, 1)")
	l.expect(cause.Noop)
}

func TestWithAnotherKeyAnUpdateGoesOnAsItWas(t *testing.T) {
	l := secretLife(t, declared("rotate", cause.Update), declared("other", cause.Update))
	l.expect(cause.Create)
	l.fail("rotate", 5*time.Minute)
	l.essence = secret("hunter3")
	l.expect(cause.Update, "rotate(update, 1)", "other(update, 1)")
	for _, another := range []string{"b", "c"} {
		l.kind.Digests = key(another)
		l.restart()
		l.expect(cause.Update)
		l.writes = 0
		l.expect(cause.Update)
		if l.writes != 0 {
			t.Errorf("a second look writes %d times", l.writes)
		}
	}
	l.now = l.now.Add(time.Hour)
	l.succeed("rotate")
	l.expect(cause.Update, "rotate(update, 2)")
	l.expect(cause.Noop)
	if r := l.record(); len(r.Seen) != 1 || len(r.Handlers) != 0 {
		t.Errorf("the record is not closed: %+v", r)
	}
}

func TestWithAnotherKeyADeletionGoesOnAsItWas(t *testing.T) {
	l := secretLife(t, declared("unmake", cause.Delete))
	l.expect(cause.Create)
	l.deleting = true
	l.results["unmake"] = handler.Result{Outcome: record.Failed}
	l.expect(cause.Delete, "unmake(delete, 1)")
	l.kind.Digests = key("b")
	l.expect(cause.Delete)
	l.succeed("unmake")
	l.essence = secret("hunter3")
	l.expect(cause.Delete, "unmake(delete, 1)?")
}

// A handler that an upgrade adds starts from what was last seen. If only digests are stored, it starts from the content at first
// sight.
func TestAnUpdateHandlerThatIsAddedSeesLaterChangesOfASecret(t *testing.T) {
	l := secretLife(t, declared("make", cause.Create))
	l.expect(cause.Create, "make(create, 1)")
	l.kind.Handlers = append(l.kind.Handlers, declared("rotate", cause.Update))
	l.restart()
	l.writes = 0
	l.expect(cause.Noop)
	l.expect(cause.Noop)
	if l.writes != 1 {
		t.Errorf("%d writes, want 1", l.writes)
	}
	l.essence = secret("hunter3")
	l.expect(cause.Update, "rotate(update, 1)")
	l.expect(cause.Noop)
	l.shows("hunter3")
}

// Of an essence that takes too much memory only the digest is read: a handler runs if and only if the essence has changed.
func TestAnEssenceThatWasNotReadIsComparedByItsDigest(t *testing.T) {
	closed := func(t *testing.T) *life {
		t.Helper()
		l := newLife(t, declared("resize", cause.Update, "spec.a"), declared("all", cause.Update))
		l.expect(cause.Create)
		r := l.record()
		for i, kept := range r.Seen {
			r.Seen[i] = record.Essence{Digest: kept.Digest}
		}
		text, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		l.stored = text
		return l
	}
	t.Run("nothing has changed", func(t *testing.T) {
		closed(t).expect(cause.Noop)
	})
	t.Run("something has changed", func(t *testing.T) {
		l := closed(t)
		l.essence = spec("a", 2, "b", 1)
		l.expect(cause.Update, "resize(update, 1)", "all(update, 1)") // Without Old.
		l.expect(cause.Noop)
		l.essence = spec("a", 3, "b", 1)
		l.expect(cause.Update, "resize(update, 1) spec.a:2->3", "all(update, 1) spec.a:2->3")
	})
}
