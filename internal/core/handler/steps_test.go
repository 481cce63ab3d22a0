package handler_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

func stepsDone(ids ...string) map[string]record.Step {
	done := map[string]record.Step{}
	for _, id := range ids {
		done[id] = record.Step{}
	}
	return done
}

// attempted plays a reconciliation in which the handler ends with this outcome, with these steps done.
func (l *life) attempted(id string, outcome record.Outcome, done ...string) {
	l.t.Helper()
	l.ended(id, outcome, stepsDone(done...))
}

// ended plays a reconciliation in which the handler ends with this outcome, with exactly these steps.
func (l *life) ended(id string, outcome record.Outcome, steps map[string]record.Step) {
	l.t.Helper()
	l.results[id] = handler.Result{Outcome: outcome, Delay: time.Second, Asked: outcome == record.Waiting, Steps: steps}
	l.pass()
	l.now = l.now.Add(time.Minute)
}

// given returns the steps that the next attempt gets, as "handler: steps".
func (l *life) given() []string {
	l.t.Helper()
	var given []string
	for _, run := range l.kind.Decide(l.state()).Runs {
		given = append(given, run.ID+": "+strings.Join(slices.Sorted(maps.Keys(run.Steps)), " "))
	}
	return given
}

// remembering is what the record of a life remembers of steps.
type remembering struct {
	handlers []handler.Declaration
	play     func(*life)
	want     []string
}

// playAll plays a life for each test and compares the steps that its next attempts get.
func playAll(t *testing.T, tests map[string]remembering) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, test.handlers...)
			l.essence = spec("size", 1)
			test.play(l)
			if diff := cmp.Diff(test.want, l.given()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Scenario 54 (docs/concepts/scenarios.md): steps last exactly as long as the handling of one cause.
func TestStepsLastAsLongAsTheHandlingOfOneCause(t *testing.T) {
	limited := declared("resize", cause.Update)
	limited.Limits.MaxAttempts = 3
	playAll(t, map[string]remembering{
		"no step was done": {makeAndResize(), func(*life) {}, []string{"make: "}},
		"a failure":        {makeAndResize(), func(l *life) { l.attempted("make", record.Retry, "a", "b") }, []string{"make: a b"}},
		"a wait, and one more step": {makeAndResize(), func(l *life) {
			l.attempted("make", record.Waiting, "a")
			l.attempted("make", record.Waiting, "a", "b")
		}, []string{"make: a b"}},
		"an edit of a creation that is open": {makeAndResize(), func(l *life) {
			l.attempted("make", record.Retry, "a")
			l.resize(2)
		}, []string{"make: a"}},
		"an edit between two steps of a creation: an update follows": {makeAndResize(), func(l *life) {
			l.attempted("make", record.Retry, "a")
			l.resize(2)
			l.attempted("make", record.Retry, "a", "b")
			l.attempted("make", record.Done, "a", "b", "c")
		}, []string{"resize: "}},
		"an edit before the first step of a creation": {makeAndResize(), func(l *life) {
			l.attempted("make", record.Retry)
			l.resize(2)
			l.attempted("make", record.Done, "a", "b")
		}, nil},
		"an edit between two steps of an update: another follows": {makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.attempted("resize", record.Retry, "a")
			l.resize(3)
			l.attempted("resize", record.Done, "a", "b")
		}, []string{"resize: "}},
		"an edit that the handler does not look at": {makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.attempted("resize", record.Retry, "a")
			l.essence = spec("size", 2, "color", "blue")
			l.attempted("resize", record.Done, "a", "b")
		}, nil},
		"an edit between two steps that is reverted: all steps again": {makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.attempted("resize", record.Retry, "a")
			l.resize(3)
			l.attempted("resize", record.Retry, "a", "b")
			l.resize(2)
		}, []string{"resize: "}},
		"a step that is done again is kept": {makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.attempted("resize", record.Retry, "a")
			l.resize(3)
			l.attempted("resize", record.Retry, "a", "b")
			l.resize(2)
			l.attempted("resize", record.Retry, "a")
		}, []string{"resize: a"}},
		"an edit of a large object between two steps": {makeAndResize(), func(l *life) {
			l.essence["metadata"] = object.Body{"annotations": object.Body{"example.com/note": noise()}}
			l.attempted("make", record.Retry, "a")
			l.resize(2)
			l.attempted("make", record.Retry, "a", "b")
			l.attempted("make", record.Done, "a", "b", "c")
		}, []string{"resize: "}},
		"a success": {makeAndResize(), func(l *life) { l.attempted("make", record.Done, "a") }, nil},
		"a permanent failure, and an edit": {makeAndResize(), func(l *life) {
			l.attempted("make", record.Failed, "a")
			l.resize(2)
		}, []string{"make: "}},
		"a change after another": {makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.attempted("resize", record.Retry, "a")
			l.attempted("resize", record.Done, "a", "b")
			l.resize(3)
		}, []string{"resize: "}},
		"an update that is reverted, and another one": {makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.attempted("resize", record.Retry, "a")
			l.resize(1)
			l.pass()
			l.resize(3)
		}, []string{"resize: "}},
		"a limit on attempts, and an edit": {[]handler.Declaration{limited}, func(l *life) {
			l.pass()
			l.essence = spec("size", 2)
			l.attempted("resize", record.Retry, "a")
			l.attempted("resize", record.Retry, "a")
			l.attempted("resize", record.Retry, "a")
			l.essence = spec("size", 3)
		}, []string{"resize: "}},
		"a deletion while the creation is open": {append(makeAndResize(), declared("unmake", cause.Delete)), func(l *life) {
			l.attempted("make", record.Retry, "a")
			l.deleting = true
		}, []string{"unmake: "}},
		"a deletion that is retried": {append(makeAndResize(), declared("unmake", cause.Delete)), func(l *life) {
			l.pass()
			l.deleting = true
			l.attempted("unmake", record.Retry, "a")
		}, []string{"unmake: a"}},
		"a resume that is retried by another process": {append(makeAndResize(), declared("greet", cause.Resume)), func(l *life) {
			l.resumed["greet"] = true
			l.pass()
			l.restart()
			l.attempted("greet", record.Retry, "a")
			l.restart()
		}, []string{"greet: a"}},
		"a request to run the creation again": {makeAndResize(), func(l *life) {
			l.attempted("make", record.Retry, "a")
			l.recreate = "please"
		}, []string{"make: "}},
		"another name of the handler": {makeAndResize(), func(l *life) {
			l.attempted("make", record.Retry, "a")
			renamed := declared("build", cause.Create)
			renamed.Former = []string{"make"}
			l.kind.Handlers[0] = renamed
		}, []string{"build: a"}},
	})
}

// Closed records contain no steps.
func TestClosedRecordsHoldNoSteps(t *testing.T) {
	l := newLife(t, append(makeAndResize(), declared("unmake", cause.Delete))...)
	l.attempted("make", record.Retry, "a")
	if !strings.Contains(l.stored, `"steps":{"a":{}}`) {
		t.Errorf("the record has no step: %s", l.stored)
	}
	l.attempted("make", record.Done, "a", "b")
	if strings.Contains(l.stored, "steps") {
		t.Errorf("the record is closed and has steps: %s", l.stored)
	}
}

// Waiting is written once, and again for each step that is done meanwhile.
func TestWaitingIsWrittenAgainForANewStep(t *testing.T) {
	l := newLife(t, makeAndResize()...)
	for i, done := range [][]string{{"a"}, {"a"}, {"a", "b"}, {"a", "b"}} {
		before := l.writes
		l.attempted("make", record.Waiting, done...)
		if got, want := l.writes-before, 1-i%2; got != want {
			t.Errorf("pass %d: %d writes, want %d", i, got, want)
		}
	}
}

// What is stored during an attempt says that it has not ended, and keeps what was known before.
func TestAnAttemptThatGoesOnIsRecordedWithItsSteps(t *testing.T) {
	for name, test := range map[string]struct {
		play     func(*life)
		outcome  record.Outcome
		attempts int
	}{
		"a first attempt": {func(*life) {}, record.Pending, 0},
		"a first attempt at an update": {func(l *life) {
			l.pass()
			l.resize(2)
		}, record.Pending, 0},
		"a later attempt": {func(l *life) { l.attempted("make", record.Retry) }, record.Retry, 1},
		"an attempt after a permanent failure": {func(l *life) {
			l.attempted("make", record.Failed)
			l.resize(7)
		}, record.Pending, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, makeAndResize()...)
			l.resize(1)
			test.play(l)
			entry := l.goesOn("a")
			if entry.Outcome != test.outcome || entry.Attempts != test.attempts || entry.Started.IsZero() {
				t.Errorf("recorded as %+v", entry)
			}
			again := l.kind.Decide(l.state()).Runs[0]
			if again.Attempt != test.attempts+1 || !again.MaybeRepeated || len(again.Steps) != 1 {
				t.Errorf("called again with %+v", again)
			}
		})
	}
}

// goesOn stores what the next handler has done while its attempt continues.
func (l *life) goesOn(done ...string) record.Entry {
	l.t.Helper()
	plan := l.kind.Decide(l.state())
	going := handler.Result{Outcome: record.Pending, Steps: stepsDone(done...)}
	r := l.kind.Settle(l.kind.Fold(plan.Record, plan.Runs[0], going, l.essence, l.now), l.essence)
	l.store(r)
	return r.Handlers[plan.Runs[0].ID]
}

// Two replicas may overlap: neither forgets steps that the other has recorded.
func TestStepsOfAnotherReplicaAreKept(t *testing.T) {
	l := newLife(t, makeAndResize()...)
	ours := l.kind.Decide(l.state()).Runs[0]
	l.goesOn("a")
	folded := l.kind.Fold(l.record(), ours, handler.Result{Outcome: record.Retry, Steps: stepsDone("b")}, l.essence, l.now)
	if diff := cmp.Diff(stepsDone("a", "b"), folded.Handlers["make"].Steps); diff != "" {
		t.Error(diff)
	}
}
