package handler_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// withEffects are a step, an effect with a result, and effects without one.
func withEffects(unknown ...string) map[string]record.Step {
	steps := stepsDone("step")
	steps["made"] = record.Step{Intent: &record.Intent{Class: record.Keyed, Token: "made", Number: 1}, Result: json.RawMessage(`{}`)}
	for _, id := range unknown {
		steps[id] = record.Step{Intent: &record.Intent{Class: record.Stop, Token: "token of " + id, Number: 1, Asks: true}}
	}
	return steps
}

// tried plays a pass in which the handler ends so, with these effects unknown.
func (l *life) tried(id string, outcome record.Outcome, unknown ...string) {
	l.t.Helper()
	l.ended(id, outcome, withEffects(unknown...))
}

// Design §7: an effect is made once for each handling of a cause, so it is remembered until that is over.
func TestEffectsLastUntilTheirCauseIsHandled(t *testing.T) {
	limited := declared("make", cause.Create)
	limited.Limits.MaxAttempts = 1
	greeting := append(makeAndResize(), declared("greet", cause.Resume))
	playAll(t, map[string]remembering{
		"a creation that is retried": {makeAndResize(), func(l *life) { l.tried("make", record.Retry, "asked") }, []string{"make: asked made step"}},
		"a creation that failed for good, and an edit": {makeAndResize(), func(l *life) {
			l.tried("make", record.Failed)
			l.resize(2)
		}, []string{"make: made"}},
		"a creation that failed twice for good": {makeAndResize(), func(l *life) {
			l.tried("make", record.Failed, "asked")
			l.resize(2)
			l.results["make"] = handler.Result{Outcome: record.Failed}
			l.pass()
			l.resize(3)
		}, []string{"make: asked made"}},
		"attempts that are over, and an edit": {[]handler.Declaration{limited}, func(l *life) {
			l.tried("make", record.Retry, "asked")
			l.pass()
			l.essence = spec("size", 3)
		}, []string{"make: asked made"}},
		"an edit that is taken back: steps anew, effects not": {makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.tried("resize", record.Retry, "asked")
			l.resize(3)
			l.tried("resize", record.Retry, "asked")
			l.resize(2)
		}, []string{"resize: asked made"}},
		"a creation that succeeded": {makeAndResize(), func(l *life) { l.tried("make", record.Done, "asked") }, nil},
		"a change that failed for good, and another": {makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.tried("resize", record.Failed)
			l.resize(3)
		}, []string{"resize: "}},
		"a change that failed for good, with an effect that nobody knows, and another": {makeAndResize(), func(l *life) {
			l.pass()
			l.resize(2)
			l.tried("resize", record.Failed, "asked")
			l.resize(3)
		}, []string{"resize: asked made"}},
		"a resume that failed for good, with an effect that nobody knows: it is not called by the next process": {greeting, func(l *life) {
			l.pass()
			l.restart()
			l.tried("greet", record.Failed, "asked")
			l.restart()
		}, nil},
		"a resume that failed for good, with an effect that nobody knows, and an answer": {greeting, func(l *life) {
			l.pass()
			l.restart()
			l.tried("greet", record.Failed, "asked")
			l.words = map[string]string{"token of asked": "done"}
		}, []string{"greet: asked made"}},
		"a deletion that failed for good, and an edit": {append(makeAndResize(), declared("unmake", cause.Delete)), func(l *life) {
			l.pass()
			l.deleting = true
			l.tried("unmake", record.Failed)
			l.resize(2)
		}, []string{"unmake: made"}},
		"an object that its handler is not for, for a while": {[]handler.Declaration{declared("make", cause.Create, "spec.color=red")}, func(l *life) {
			l.essence = spec("color", "red")
			l.tried("make", record.Retry, "asked")
			l.essence = spec("color", "blue")
			l.pass()
			l.essence = spec("color", "red")
		}, []string{"make: asked made"}},
		"a person who asks for the creation once more": {makeAndResize(), func(l *life) {
			l.tried("make", record.Failed, "asked")
			l.recreate = "please"
		}, []string{"make: "}},
	})
}

// Design §2, principle 4: what a person says is an edge. It calls the handler once, whatever comes of that, also where nothing else
// would, and the same word does not call it again.
func TestAWordOfAPersonCallsTheHandlerOnce(t *testing.T) {
	for name, test := range map[string]struct {
		begin func(*life)
		want  string
	}{
		"a creation that failed for good":   {func(l *life) { l.tried("make", record.Failed, "asked") }, "make"},
		"a creation that is in a long wait": {func(l *life) { l.tried("make", record.Waiting, "asked"); l.now = l.now.Add(-time.Minute) }, "make"},
		"a change that failed for good, and was taken back": {func(l *life) {
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
					t.Errorf("word %d, %q: called is %t: %v", i, word, called, runs)
				}
			}
		})
	}
}

// A change whose effect nobody knows is not over: the handler sees it as it was when it is called again.
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

// Design §5: with no watermark the answer is Create, and effects protect what matters. That is known as long as the creation is open.
func TestACreationWithoutARecordIsDoubtedUntilItIsClosed(t *testing.T) {
	for name, test := range map[string]struct{ inherited, older, settled, want bool }{
		"an object that this process saw come":                {false, false, false, false},
		"an object that came as another replica was relieved": {true, false, false, false},
		"an object that was there before this process":        {true, true, false, true},
		"an object that is known to have had a record":        {true, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, makeAndResize()...)
			l.inherited, l.older, l.settled = test.inherited, test.older, test.settled
			l.fail("make", time.Second)
			l.pass()
			if got := l.record().Doubted; got != test.want {
				t.Errorf("doubted is %t, want %t", got, test.want)
			}
			l.inherited = false
			l.results["make"] = handler.Result{Outcome: record.Failed}
			l.now = l.now.Add(time.Minute)
			l.pass()
			if got := l.record().Doubted; got != test.want {
				t.Errorf("after a failure for good doubted is %t, want %t", got, test.want)
			}
			l.succeed("make")
			l.essence = spec("a", 3)
			l.pass()
			if l.record().Doubted {
				t.Error("it is doubted although its creation is closed")
			}
		})
	}
}

// Waiting is written once, but not if something is known of an effect meanwhile.
func TestWaitingIsWrittenAnewForAnEffect(t *testing.T) {
	l := newLife(t, makeAndResize()...)
	for i, unknown := range [][]string{{"a"}, {"a"}, {"a", "b"}} {
		before := l.writes
		l.tried("make", record.Waiting, unknown...)
		if got, want := l.writes-before, 1-i%2; got != want {
			t.Errorf("pass %d: %d writes, want %d", i, got, want)
		}
	}
}
