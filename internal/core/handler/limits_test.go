package handler_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// tried returns an attempt of a handler with limits.
func tried(limits handler.Limits, attempt int) handler.Run {
	return handler.Run{Declaration: handler.Declaration{ID: "id", Limits: limits}, Attempt: attempt, Started: begin()}
}

func begin() time.Time { return time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC) }

func TestTheBackoffGrowsToItsCap(t *testing.T) {
	for _, test := range []struct {
		name        string
		limits      handler.Limits
		first, most time.Duration
	}{
		{"usual", handler.Limits{}, time.Second, 5 * time.Minute},
		{"own", handler.Limits{FirstBackoff: 3 * time.Second, LongestBackoff: 10 * time.Second}, 3 * time.Second, 10 * time.Second},
		{"constant", handler.Limits{FirstBackoff: time.Minute, LongestBackoff: time.Minute}, time.Minute, time.Minute},
		{"without end", handler.Limits{FirstBackoff: time.Hour, LongestBackoff: math.MaxInt64 / 2}, time.Hour, math.MaxInt64 / 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := test.first
			for attempt := 1; attempt < 200; attempt++ {
				delay, again := tried(test.limits, attempt).Backoff("uid"), tried(test.limits, attempt).Backoff("uid")
				if delay < want-want/10 || delay > want+want/10 || again != delay {
					t.Fatalf("attempt %d waits %s, and then %s, want about %s", attempt, delay, again, want)
				}
				if want *= 2; want > test.most || want < 0 {
					want = test.most
				}
			}
		})
	}
	if tried(handler.Limits{}, 5).Backoff("one") == tried(handler.Limits{}, 5).Backoff("other") {
		t.Error("objects that failed together are retried together")
	}
}

// Scenarios 22 to 26 and 92 (docs/concepts/scenarios.md): what a result means, one rule each.
func TestLimitsAndPoliciesOfAnAttempt(t *testing.T) {
	failed := handler.Result{Outcome: record.Retry, Message: "no luck"}
	asked := handler.Result{Outcome: record.Retry, Delay: time.Minute, Asked: true, Message: "no luck"}
	waits := handler.Result{Outcome: record.Waiting, Delay: time.Minute, Asked: true}
	invalid := handler.Result{Outcome: record.Retry, Refused: true, Message: "no luck"}
	three := handler.Limits{MaxAttempts: 3}
	minutes := handler.Limits{Timeout: 10 * time.Minute}
	for _, test := range []struct {
		name    string
		limits  handler.Limits
		attempt int
		after   time.Duration
		bare    handler.Result
		want    record.Outcome
		message string
	}{
		{"an error is retried", handler.Limits{}, 1, 0, failed, record.Retry, "no luck"},
		{"a success counts as one", three, 9, time.Hour, handler.Result{Outcome: record.Done}, record.Done, ""},
		{"Permanent is final", handler.Limits{OnError: handler.Ignore}, 1, 0, handler.Result{Outcome: record.Failed, Message: "never"}, record.Failed, "never"},
		{"Ignore is success", handler.Limits{OnError: handler.Ignore}, 1, 0, failed, record.Done, ""},
		{"Ignore leaves RetryAfter alone", handler.Limits{OnError: handler.Ignore}, 1, 0, asked, record.Retry, "no luck"},
		{"Fail is final", handler.Limits{OnError: handler.Fail}, 1, 0, failed, record.Failed, "no luck"},
		{"Fail leaves RetryAfter alone", handler.Limits{OnError: handler.Fail}, 1, 0, asked, record.Retry, "no luck"},
		{"Fail leaves waiting alone", handler.Limits{OnError: handler.Fail}, 1, 0, waits, record.Waiting, ""},
		{"the second of three attempts", three, 2, 0, failed, record.Retry, "no luck"},
		{"the last of three attempts", three, 3, 0, failed, record.Failed, "gave up, MaxAttempts(3) reached: no luck"},
		{"the last of three attempts asks for another", three, 3, 0, asked, record.Failed, "gave up, MaxAttempts(3) reached: no luck"},
		{"waiting is not counted", three, 3, 0, waits, record.Waiting, ""},
		{"waiting after three attempts", three, 4, 0, waits, record.Failed, "gave up, MaxAttempts(3) reached"},
		{"in time", minutes, 1, 9 * time.Minute, asked, record.Retry, "no luck"},
		{"too late", minutes, 1, 9*time.Minute + time.Second, asked, record.Failed, "gave up, RetryFor(10m0s) exceeded: no attempt may start that long after the first: no luck"},
		{"waiting too long", minutes, 1, 9*time.Minute + time.Second, waits, record.Failed, "gave up, RetryFor(10m0s) exceeded: no attempt may start that long after the first"},
		{"invalid once", handler.Limits{}, 9, 0, invalid, record.Retry, "no luck"},
		{"invalid again and again", handler.Limits{}, 10, 0, invalid, record.Failed, "gave up, the API server rejects what the handler writes as invalid, after 10 attempts: no luck"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := tried(test.limits, test.attempt).Judge("uid", test.bare, begin().Add(test.after))
			if got.Outcome != test.want || got.Message != test.message {
				t.Errorf("%s %q, want %s %q", got.Outcome, got.Message, test.want, test.message)
			}
			if got.Ignored != (test.want == record.Done && test.bare.Outcome != record.Done) {
				t.Errorf("ignored: %t", got.Ignored)
			}
		})
	}
}

func limited(id string, verb cause.Cause, limits handler.Limits) handler.Declaration {
	found := declared(id, verb)
	found.Limits = limits
	return found
}

// An attempt that ended the process can be the last one: then nothing runs, and the record says why.
func TestLimitsExceededWhileDown(t *testing.T) { // docs/concepts/scenarios.md, 25 and 26
	for _, test := range []struct {
		name   string
		limits handler.Limits
		later  time.Duration
	}{
		{"MaxAttempts", handler.Limits{MaxAttempts: 1}, time.Minute},
		{"RetryFor", handler.Limits{Timeout: time.Hour}, 2 * time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLife(t, limited("make", cause.Create, test.limits), declared("resize", cause.Update))
			l.fail("make", time.Minute)
			l.expect(cause.Create, "make(create, 1)")
			l.restart()
			l.now = l.now.Add(test.later)
			l.expect(cause.Create)
			entry := l.record().Handlers["make"]
			if entry.Outcome != record.Failed || !strings.HasPrefix(entry.Message, "gave up, "+test.name) || !strings.HasSuffix(entry.Message, "no luck") {
				t.Errorf("%s %q", entry.Outcome, entry.Message)
			}
			l.expect(cause.Noop)
			l.essence = spec("a", 2)
			l.expect(cause.Create, "make(create, 1)?") // Its view has changed, so attempts are counted from 1 again.
		})
	}
}

func TestAnEditWhileDownResetsTheLimits(t *testing.T) {
	l := newLife(t, limited("resize", cause.Update, handler.Limits{Timeout: time.Hour}))
	l.expect(cause.Create)
	l.fail("resize", time.Minute)
	l.essence = spec("a", 2)
	l.expect(cause.Update, "resize(update, 1) spec.a:1->2 spec.b:1-><nil>")
	l.now = l.now.Add(2 * time.Hour)
	l.essence = spec("a", 3)
	l.succeed("resize")
	l.expect(cause.Update, "resize(update, 1) spec.a:1->3 spec.b:1-><nil>")
}

func TestAResumeHandlerWhoseTimeIsOverIsNotCalled(t *testing.T) {
	l := newLife(t, limited("greet", cause.Resume, handler.Limits{Timeout: time.Minute}))
	l.expect(cause.Create)
	l.restart()
	l.fail("greet", time.Minute)
	l.expect(cause.Resume, "greet(resume, 1)")
	l.restart()
	l.now = l.now.Add(time.Hour)
	l.expect(cause.Resume)
	if entries := l.record().Handlers; len(entries) != 0 {
		t.Errorf("left: %v", entries)
	}
}

func TestADeleteHandlerThatReleasesItsObject(t *testing.T) { // docs/concepts/scenarios.md, 18
	l := twoDeletes(t)
	l.kind.Handlers[1].Releases = true
	l.expect(cause.Create, "make(create, 1)")
	l.deleting = true
	l.results["one"] = handler.Result{Outcome: record.Failed, Message: "never"}
	l.fail("two", time.Minute)
	l.expect(cause.Delete, "one(delete, 1)", "two(delete, 1)")
	if blocked := l.kind.Blocked(l.record()); blocked != nil || !l.marked {
		t.Errorf("blocked by %q, held: %t", blocked, l.marked)
	}
	l.now = l.now.Add(time.Minute)
	l.succeed("two")
	l.expect(cause.Delete, "two(delete, 2)")
	if l.marked {
		t.Error("not released")
	}
}

// A user can release the object: the delete handlers that failed are given up.
func TestTheAnnotationThatReleasesAnObject(t *testing.T) { // docs/concepts/scenarios.md, 18
	for _, test := range []struct {
		name, value string
		want        []string // the handlers that block the deletion afterwards
	}{
		{"one handler", "one", []string{"two"}},
		{"the second handler", "two", []string{"one"}},
		{"all that failed", object.ReleaseAll, nil},
		{"a handler that has not failed", "three", []string{"one", "two"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := twoDeletes(t)
			l.expect(cause.Create, "make(create, 1)")
			l.deleting = true
			for _, id := range []string{"one", "two"} {
				l.results[id] = handler.Result{Outcome: record.Failed, Message: "never"}
			}
			l.expect(cause.Delete, "one(delete, 1)", "two(delete, 1)")
			l.release = test.value
			if len(test.want) == 0 {
				l.expect(cause.Delete)
				l.release = "" // A handler stays given up.
				l.expect(cause.Free)
			} else {
				l.expect(cause.Delete)
			}
			if diff := cmp.Diff(test.want, l.kind.Blocked(l.record())); diff != "" || l.marked != (len(test.want) > 0) {
				t.Errorf("held: %t, blocked: %s", l.marked, diff)
			}
		})
	}
}

// A delete handler that is being retried has failed too. One that waits or was not called yet has not.
func TestOnlyDeleteHandlersThatFailedAreGivenUp(t *testing.T) {
	l := twoDeletes(t)
	l.expect(cause.Create, "make(create, 1)")
	l.deleting, l.release = true, object.ReleaseAll
	l.fail("one", 5*time.Minute)
	l.results["two"] = handler.Result{Outcome: record.Waiting, Delay: time.Minute, Asked: true}
	l.expect(cause.Delete, "one(delete, 1)", "two(delete, 1)")
	l.expect(cause.Delete)
	if entries := l.record().Handlers; entries["one"].Outcome != record.Done {
		t.Errorf("%+v", entries["one"])
	}
	if !l.marked {
		t.Fatal("released, although a handler waits")
	}
	l.now = l.now.Add(time.Minute)
	l.succeed("two")
	l.expect(cause.Delete, "two(delete, 1)?")
	if l.marked {
		t.Error("not released")
	}
}

func TestAResumeHandlerForObjectsThatAreBeingDeleted(t *testing.T) { // docs/concepts/scenarios.md, 13
	l := newLife(t, declared("greet", cause.Resume), declared("first", cause.Resume), declared("unmake", cause.Delete))
	l.kind.Handlers[1].AlsoDeleting = true
	l.expect(cause.Create)
	l.expect(cause.Resume, "greet(resume, 1)", "first(resume, 1)")
	l.deleting = true
	l.fail("unmake", time.Minute)
	l.expect(cause.Delete, "unmake(delete, 1)") // The object was resumed before.
	l.restart()
	l.fail("first", 5*time.Minute)
	l.expect(cause.Delete, "first(resume, 1)")
	l.now = l.now.Add(time.Minute)
	l.succeed("unmake")
	l.expect(cause.Delete, "unmake(delete, 2)")
	if l.marked {
		t.Error("the object waits for the resume handler")
	}
	l.restart()
	l.expect(cause.Free)
}

// Unfinished entries are obsolete after a deletion, and are removed while other finalizers keep the object.
func TestADeletionDropsWhatWasNotFinished(t *testing.T) { // docs/concepts/scenarios.md, 35
	l := twoDeletes(t)
	l.fail("make", 5*time.Minute)
	l.expect(cause.Create, "make(create, 1)")
	l.deleting = true
	l.expect(cause.Delete, "one(delete, 1)", "two(delete, 1)")
	if _, left := l.record().Handlers["make"]; left {
		t.Errorf("left: %s", l.stored)
	}
}

// An attempt whose result could not be written is folded into the next plan's record. Handlers that this plan gives up must not
// override it.
func TestAnAttemptThatWasNotSavedInTimeIsNotLost(t *testing.T) {
	l := newLife(t, limited("resize", cause.Update, handler.Limits{Timeout: time.Minute}))
	l.expect(cause.Create)
	l.essence = spec("a", 2, "b", 1)
	l.fail("resize", time.Second)
	l.expect(cause.Update, "resize(update, 1) spec.a:1->2")
	l.now = l.now.Add(time.Second)
	second := l.kind.Decide(l.state()).Runs[0]
	l.now = l.now.Add(time.Hour)
	late := l.kind.Decide(l.state())
	if len(late.GivenUp) != 1 || len(late.Runs) != 0 {
		t.Fatalf("given up: %v, runs: %v", late.GivenUp, late.Runs)
	}
	l.store(l.kind.Settle(l.kind.Fold(late.Record, second, l.results["resize"], l.essence, l.now), l.essence))
	if entry := l.record().Handlers["resize"]; entry.Attempts != 2 || entry.Seen != "" {
		t.Errorf("%+v", entry)
	}
	l.now = l.now.Add(time.Hour)
	l.expect(cause.Update)
	l.expect(cause.Noop)
}
