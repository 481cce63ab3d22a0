package handler_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// withEffects returns a step, an effect with a result, and effects without one.
func withEffects(unknown ...string) map[string]record.Step {
	steps := stepsDone("step")
	steps["made"] = record.Step{Intent: &record.Intent{Class: record.Keyed, Token: "made", Number: 1}, Result: json.RawMessage(`{}`)}
	for _, id := range unknown {
		steps[id] = record.Step{Intent: &record.Intent{Class: record.Stop, Token: "token of " + id, Number: 1, Asks: true}}
	}
	return steps
}

// tried plays a reconciliation in which the handler ends with this outcome, with these effects unknown.
func (l *life) tried(id string, outcome record.Outcome, unknown ...string) {
	l.t.Helper()
	l.ended(id, outcome, withEffects(unknown...))
}

// An effect is made once per handling of a cause, so it is stored until the handling ends.
func TestEffectsLastUntilTheirCauseIsHandled(t *testing.T) {
	limited := declared("make", cause.Create)
	limited.Limits.MaxAttempts = 1
	greeting := append(makeAndResize(), declared("greet", cause.Resume))
	playAll(t, map[string]remembering{
		"a creation that is retried": {makeAndResize(), func(l *life) { l.tried("make", record.Retry, "asked") }, []string{"make: asked made step"}},
		"a creation that failed permanently, and an edit": {makeAndResize(), func(l *life) {
			l.tried("make", record.Failed)
			l.resize(2)
		}, []string{"make: made"}},
		"a creation that failed permanently twice": {makeAndResize(), func(l *life) {
			l.tried("make", record.Failed, "asked")
			l.resize(2)
			l.results["make"] = handler.Result{Outcome: record.Failed}
			l.pass()
			l.resize(3)
		}, []string{"make: asked made"}},
		"a limit on attempts, and an edit": {[]handler.Declaration{limited}, func(l *life) {
			l.tried("make", record.Retry, "asked")
			l.pass()
			l.essence = spec("size", 3)
		}, []string{"make: asked made"}},
		"an edit that is reverted: steps again, effects not": {makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.tried("resize", record.Retry, "asked")
			l.resize(3)
			l.tried("resize", record.Retry, "asked")
			l.resize(2)
		}, []string{"resize: asked made"}},
		"a creation that succeeded": {makeAndResize(), func(l *life) { l.tried("make", record.Done, "asked") }, nil},
		"a change that failed permanently, and another": {makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.tried("resize", record.Failed)
			l.resize(3)
		}, []string{"resize: "}},
		"a change that failed permanently with an unknown effect, and another": {makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.tried("resize", record.Failed, "asked")
			l.resize(3)
		}, []string{"resize: asked made"}},
		"a resume that failed permanently with an unknown effect: the next process does not call it": {greeting, func(l *life) {
			l.pass()
			l.restart()
			l.tried("greet", record.Failed, "asked")
			l.restart()
		}, nil},
		"a resume that failed permanently with an unknown effect, and an answer": {greeting, func(l *life) {
			l.pass()
			l.restart()
			l.tried("greet", record.Failed, "asked")
			l.words = map[string]string{"token of asked": "done"}
		}, []string{"greet: asked made"}},
		"a deletion that failed permanently, and an edit": {append(makeAndResize(), declared("unmake", cause.Delete)), func(l *life) {
			l.pass()
			l.deleting = true
			l.tried("unmake", record.Failed)
			l.resize(2)
		}, []string{"unmake: made"}},
		"an object that does not match its handler for a while": {[]handler.Declaration{declared("make", cause.Create, "spec.color=red")}, func(l *life) {
			l.essence = spec("color", "red")
			l.tried("make", record.Retry, "asked")
			l.essence = spec("color", "blue")
			l.pass()
			l.essence = spec("color", "red")
		}, []string{"make: asked made"}},
		"a request to run the creation again": {makeAndResize(), func(l *life) {
			l.tried("make", record.Failed, "asked")
			l.recreate = "please"
		}, []string{"make: "}},
	})
}

// An answer of a user triggers the handler once, whatever the result, even where nothing else would. The same answer does not trigger
// it again.
func TestAWordOfAPersonCallsTheHandlerOnce(t *testing.T) {
	for name, test := range map[string]struct {
		begin func(*life)
		want  string
	}{
		"a creation that failed permanently":    {func(l *life) { l.tried("make", record.Failed, "asked") }, "make"},
		"a creation that waits for a long time": {func(l *life) { l.tried("make", record.Waiting, "asked"); l.now = l.now.Add(-time.Minute) }, "make"},
		"a change that failed permanently and was reverted": {func(l *life) {
			l.pass()
			l.resize(2)
			l.tried("resize", record.Failed, "asked")
			l.resize(1)
		}, "resize"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, makeAndResize()...)
			l.resize(1)
			test.begin(l)
			for i, word := range []string{"", "yes", "yes", "done", "done"} {
				l.words = map[string]string{"token of asked": word, "another token": "again"}
				l.results[test.want] = handler.Result{Outcome: record.Failed, Steps: withEffects("asked")}
				_, runs := l.pass()
				if called := len(runs) > 0; called != (i == 1 || i == 3) {
					t.Errorf("answer %d, %q: called: %t, runs: %v", i, word, called, runs)
				}
			}
		})
	}
}

// A change with an unknown effect has not ended: the handler sees the same change when it is called again.
func TestAChangeWithAnUnknownEffectIsSeenAgain(t *testing.T) {
	l := newLife(t, makeAndResize()...)
	l.resize(1)
	l.pass()
	l.resize(2)
	l.tried("resize", record.Failed, "asked")
	l.expect(cause.Update)
	l.words = map[string]string{"token of asked": "done"}
	l.succeed("resize")
	l.expect(cause.Update, "resize(update, 1)? spec.size:1->2")
	l.expect(cause.Noop)
}

// Without a watermark the cause is Create, and effects protect what matters. The record says so while the creation is open.
func TestACreationWithoutARecordIsDoubtedUntilItIsClosed(t *testing.T) {
	for name, test := range map[string]struct{ inherited, older, settled, want bool }{
		"an object whose creation this process saw":                         {false, false, false, false},
		"an object that was created during a takeover from another replica": {true, false, false, false},
		"an object that existed before this process":                        {true, true, false, true},
		"an object that is known to have had a record":                      {true, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, makeAndResize()...)
			l.inherited, l.older, l.settled = test.inherited, test.older, test.settled
			l.fail("make", time.Second)
			l.pass()
			if got := l.record().Doubted; got != test.want {
				t.Errorf("doubted: %t, want %t", got, test.want)
			}
			l.inherited = false
			l.results["make"] = handler.Result{Outcome: record.Failed}
			l.now = l.now.Add(time.Minute)
			l.pass()
			if got := l.record().Doubted; got != test.want {
				t.Errorf("doubted after a permanent failure: %t, want %t", got, test.want)
			}
			l.succeed("make")
			l.essence = spec("a", 3)
			l.pass()
			if l.record().Doubted {
				t.Error("doubted although the creation is closed")
			}
		})
	}
}

// Waiting is written only once, unless something new is known of an effect.
func TestWaitingIsWrittenAgainForAnEffect(t *testing.T) {
	l := newLife(t, makeAndResize()...)
	for i, unknown := range [][]string{{"a"}, {"a"}, {"a", "b"}} {
		before := l.writes
		l.tried("make", record.Waiting, unknown...)
		if got, want := l.writes-before, 1-i%2; got != want {
			t.Errorf("pass %d: %d writes, want %d", i, got, want)
		}
	}
}
