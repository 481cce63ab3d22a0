package handler_test

import (
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// inCreation returns a handler for creations, and for updates of the size, of red objects.
func inCreation() handler.Declaration {
	return declared("resize", cause.Update, "spec.size", "spec.color=red", atCreation)
}

// The intent of an effect without a result is kept until the result is known, whatever ends the handling that declared it.
func TestAnIntentOutlastsWhatEndsItsHandling(t *testing.T) {
	red := func(size int) func(*life) { return func(l *life) { l.essence = spec("size", size, "color", "red") } }
	blue := func(size int) func(*life) { return func(l *life) { l.essence = spec("size", size, "color", "blue") } }
	pass := func(l *life) { l.pass() }
	play := func(steps ...func(*life)) func(*life) {
		return func(l *life) {
			for _, step := range steps {
				step(l)
			}
		}
	}
	tried := func(id string) func(*life) { return func(l *life) { l.tried(id, record.Retry, "asked") } }
	update := declared("resize", cause.Update, "spec.size", "spec.color=red")
	wanting := declared("resize", cause.Update, "spec.size")
	wanting.Changes = []filter.Change{{Path: object.Path{"spec", "size"}, To: filter.Equals(int64(2))}}
	playAll(t, map[string]remembering{
		"a change that is taken back, and made again": {
			[]handler.Declaration{update}, play(red(1), pass, red(2), tried("resize"), red(1), pass, red(2)), []string{"resize: asked made"},
		},
		"a change that is reverted, and another one": {
			[]handler.Declaration{update}, play(red(1), pass, red(2), tried("resize"), red(1), pass, red(3)), []string{"resize: asked made"},
		},
		"an object that leaves the filter, and another change": {
			[]handler.Declaration{update}, play(red(1), pass, red(2), tried("resize"), blue(2), pass, red(2), pass, red(3)), []string{"resize: asked made"},
		},
		"a change that the handler does not want, and one that it wants": {
			[]handler.Declaration{wanting}, play(red(1), pass, red(2), tried("resize"), red(3), pass, red(2)), []string{"resize: asked made"},
		},
		"a creation that continues as an update": {
			[]handler.Declaration{inCreation()},
			play(red(1), tried("resize"), blue(1), pass, func(l *life) { l.essence = spec("color", "red") }, pass, red(3)),
			[]string{"resize: asked made"},
		},
		"a resumed object that leaves the filter, and the next process": {
			[]handler.Declaration{declared("greet", cause.Resume, "spec.color=red")},
			play(red(1), pass, (*life).restart, tried("greet"), blue(1), pass, red(1), pass, (*life).restart),
			[]string{"greet: asked made"},
		},
		"a resumed object outside of the filter": {
			[]handler.Declaration{declared("greet", cause.Resume, "spec.color=red"), declared("see", cause.Update)},
			play(red(1), pass, (*life).restart, tried("greet"), blue(1), pass, blue(2), pass, pass, red(2), pass, (*life).restart),
			[]string{"greet: asked made"},
		},
	})
}

// After a change was reverted and made again there is one run for it, not a second one with another effect.
func TestAChangeThatIsTakenBackAndMadeAgainIsOneChange(t *testing.T) {
	l := newLife(t, makeAndResize()...)
	l.resize(1)
	l.pass()
	l.resize(2)
	l.tried("resize", record.Retry, "asked")
	l.resize(1)
	l.expect(cause.Noop)
	written := l.writes
	l.expect(cause.Noop)
	if l.writes != written {
		t.Error("the record is written although nothing has changed")
	}
	l.resize(2)
	l.succeed("resize")
	l.expect(cause.Update, "resize(update, 1)? spec.size:1->2")
	l.expect(cause.Noop)
	if left := l.record().Handlers; len(left) != 0 {
		t.Errorf("after the result the record still has %+v", left)
	}
}

// Two replicas can handle an object for a moment. An intent of one of them must survive when the other one folds in its failure.
func TestAFailureKeepsTheIntentsOfAnotherReplica(t *testing.T) {
	l := newLife(t, makeAndResize()...)
	l.resize(1)
	late := l.kind.Decide(l.state()).Runs[0]
	l.tried("make", record.Failed, "asked")
	folded := l.kind.Fold(l.record(), late, handler.Result{Outcome: record.Retry, Delay: time.Second}, l.essence, l.now)
	if !record.Unknown(folded.Handlers["make"].Steps) {
		t.Errorf("the intent is forgotten: %+v", folded.Handlers["make"])
	}
}
