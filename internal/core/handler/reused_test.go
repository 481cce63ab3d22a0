package handler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// upgradeTo replaces the handlers, as a new release of the operator does.
func (l *life) upgradeTo(handlers ...handler.Declaration) {
	l.kind.Handlers = handlers
	l.restart()
	l.now = l.now.Add(time.Hour)
}

// opened returns an object with a handler of this verb that has ended with this outcome.
func opened(t *testing.T, verb cause.Cause, outcome record.Outcome) *life {
	l := newLife(t, declared("keep", cause.Create), declared("id", verb))
	if verb != cause.Create {
		l.pass()
		l.essence = spec("a", 2, "b", 1)
	}
	l.ended("id", outcome, nil)
	l.succeed("id")
	return l
}

// An id that an earlier release used for a handler of another verb has no meaning: the new handler starts without a history.
func TestAnIDThatIsUsedAgainForAnotherVerb(t *testing.T) {
	type both struct{ before, after cause.Cause }
	for _, outcome := range []record.Outcome{record.Retry, record.Failed, record.Waiting} {
		for verbs, runs := range map[both][]string{
			{cause.Create, cause.Delete}: {"id(delete, 1)"},
			{cause.Create, cause.Resume}: {"id(resume, 1)"},
			{cause.Create, cause.Update}: nil,
			{cause.Update, cause.Create}: nil, // The object was already created.
			// What the update handler has not seen is part of the diff of other handlers.
			{cause.Update, cause.Delete}: {"id(delete, 1)" + map[bool]string{true: " spec.a:1->2"}[outcome.Open()]},
			{cause.Update, cause.Resume}: {"id(resume, 1)" + map[bool]string{true: " spec.a:1->2"}[outcome.Open()]},
		} {
			t.Run(fmt.Sprintf("%s, %s and then %s", outcome, verbs.before, verbs.after), func(t *testing.T) {
				l := opened(t, verbs.before, outcome)
				l.upgradeTo(declared("id", verbs.after))
				l.deleting = verbs.after == cause.Delete
				l.marked = l.deleting
				_, made := l.pass()
				if diff := cmp.Diff(runs, made); diff != "" || l.marked {
					t.Errorf("finalizer: %t; runs: %s", l.marked, diff)
				}
			})
		}
	}
}

// An update handler with the id of an earlier create handler gets updates.
func TestAnUpdateHandlerWithTheIDOfACreateHandler(t *testing.T) {
	l := opened(t, cause.Create, record.Retry)
	l.upgradeTo(declared("id", cause.Update))
	l.expect(cause.Noop)
	l.essence = spec("a", 3, "b", 1)
	l.expect(cause.Update, "id(update, 1) spec.a:1->3")
	l.expect(cause.Noop)
}

// A delete handler with the id of an update handler that a filter excluded has its own filter, as any new handler.
func TestADeleteHandlerWithTheIDOfAnUpdateHandlerHasAFilterOfItsOwn(t *testing.T) {
	l := newLife(t, declared("id", cause.Update))
	l.essence = spec("color", "blue")
	l.pass()
	l.essence = spec("color", "green")
	l.ended("id", record.Retry, nil)
	l.upgradeTo(declared("id", cause.Delete, "spec.color=red"))
	l.succeed("id")
	l.deleting, l.marked = true, true
	if _, runs := l.pass(); len(runs) != 0 {
		t.Errorf("the filter does not exclude %q", runs)
	}
}

// unfinished holds creations that have not succeeded.
func unfinished() map[string]func(*life, string) {
	return map[string]func(*life, string){
		"is retried": func(l *life, id string) { l.tried(id, record.Retry, "asked") },
		"waits":      func(l *life, id string) { l.tried(id, record.Waiting, "asked") },
		"has failed": func(l *life, id string) { l.tried(id, record.Failed, "asked") },
	}
}

// releases are three successive releases. The second, if not nil, does not continue the creation; the third does.
type releases struct{ first, second, third []handler.Declaration }

// Unfinished work continues after a release that did not declare the handler, and after a rollback to one that knows the handler by
// its former id. A creation is done only when it has succeeded.
func TestACreationThatNeverSucceededIsNotDone(t *testing.T) {
	see := declared("see", cause.Update)
	for name, all := range map[string]releases{
		"a release that does not have the handler, and one that has it again": {
			[]handler.Declaration{declared("make", cause.Create), see}, []handler.Declaration{see}, []handler.Declaration{declared("make", cause.Create), see},
		},
		"the id of another verb for one release": {
			[]handler.Declaration{declared("make", cause.Create), see},
			[]handler.Declaration{declared("make", cause.Delete), see},
			[]handler.Declaration{declared("make", cause.Create), see},
		},
		"a rollback of a new id": {
			[]handler.Declaration{formerly("make", declared("build", cause.Create)), see}, nil, []handler.Declaration{declared("make", cause.Create), see},
		},
		"a rollback of two new ids": {
			[]handler.Declaration{formerly("make", declared("build", cause.Create)), see},
			[]handler.Declaration{declared("build", cause.Create), see},
			[]handler.Declaration{formerly("build", declared("make", cause.Create)), see},
		},
	} {
		for what, begin := range unfinished() {
			t.Run(name+", and the creation "+what, func(t *testing.T) {
				l := newLife(t, all.first...)
				begin(l, all.first[0].ID)
				l.skip(all.second)
				l.upgradeTo(all.third...)
				l.finishesCreation()
			})
		}
	}
}

// skip plays the release that does not continue the creation and that writes the object.
func (l *life) skip(handlers []handler.Declaration) {
	if handlers == nil {
		return
	}
	l.upgradeTo(handlers...)
	l.results = map[string]handler.Result{"build": {Outcome: record.Retry, Steps: withEffects("asked")}}
	l.pass()
	l.pass()
	l.essence = spec("a", 5, "b", 1)
	l.pass()
}

// finishesCreation expects that the creation is not done and that its effect is known. Then the creation succeeds.
func (l *life) finishesCreation() {
	l.t.Helper()
	l.essence = spec("a", 6, "b", 1)
	l.results = nil
	runs := l.kind.Decide(l.state()).Runs
	if len(runs) == 0 || runs[0].ID != "make" || runs[0].Reason != cause.Create {
		l.t.Fatalf("the creation counts as done: %+v", runs)
	}
	if !record.Unknown(runs[0].Steps) {
		l.t.Error("its intent is forgotten")
	}
	l.pass()
	l.pass() // An edit after the start of the effect is an update.
	l.expect(cause.Noop)
	if left := l.record().Handlers; len(left) != 0 {
		l.t.Errorf("the final record still has %+v", left)
	}
}
