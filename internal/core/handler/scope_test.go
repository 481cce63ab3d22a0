package handler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

const onlyRed = "spec.color=red"

func colored(color string, size int) object.Body { return spec("color", color, "size", size) }

// Scenario 48 (docs/concepts/scenarios.md): an object that matches no handler never gets a record or a finalizer.
func TestWhatNoHandlerIsForIsLeftAlone(t *testing.T) {
	l := newLife(t, declared("make", cause.Create, onlyRed), declared("resize", cause.Update, onlyRed),
		declared("unmake", cause.Delete, onlyRed), declared("greet", cause.Resume, onlyRed))
	l.essence = colored("blue", 1)
	l.expect(cause.Unmatched)
	l.essence = colored("blue", 2)
	l.expect(cause.Unmatched)
	l.restart()
	l.expect(cause.Unmatched)
	l.deleting = true
	l.expect(cause.Unmatched)
	if l.writes != 0 {
		t.Errorf("%d writes", l.writes)
	}
	if l.kind.EveryObject() {
		t.Error("EveryObject is true")
	}
}

// Scenario 49 (docs/concepts/scenarios.md): an object that starts to match a filter is a creation for that handler alone.
func TestEnteringAFilterIsCreationForThatHandlerAlone(t *testing.T) {
	l := newLife(t, declared("make", cause.Create), declared("red-make", cause.Create, onlyRed),
		declared("resize", cause.Update, "spec.size"), declared("red-resize", cause.Update, "spec.size", onlyRed))
	l.essence = colored("blue", 1)
	l.expect(cause.Create, "make(create, 1)")
	l.expect(cause.Noop)
	l.essence = colored("red", 2)
	l.fail("red-make", time.Minute)
	l.expect(cause.Update, "red-make(create, 1)", "resize(update, 1) spec.size:1->2")
	l.essence = colored("red", 3) // It delays no other handler. Handlers that the object matches now see later changes.
	l.now = l.now.Add(time.Second)
	l.expect(cause.Update, "red-make(create, 2)", "resize(update, 1) spec.size:2->3", "red-resize(update, 1) spec.size:2->3")
	l.succeed("red-make")
	l.now = l.now.Add(time.Hour)
	l.expect(cause.Update, "red-make(create, 3)")
	l.expect(cause.Noop)
	if len(l.record().Handlers) != 0 || len(l.record().Seen) != 1 {
		t.Errorf("the record is not closed: %s", l.stored)
	}
}

// A create handler that succeeded never runs again, in and out of its filter. An update handler starts from the state at that time.
// See G13 in docs/concepts/footguns.md.
func TestLeavingAndComingBack(t *testing.T) {
	l := newLife(t, declared("red-make", cause.Create, onlyRed), declared("red-resize", cause.Update, "spec.size", onlyRed))
	l.essence = colored("red", 1)
	l.expect(cause.Create, "red-make(create, 1)")
	l.essence = colored("blue", 1)
	l.expect(cause.Noop)
	before := l.writes
	l.essence = colored("blue", 2)
	l.expect(cause.Noop)
	if l.writes != before {
		t.Error("a change outside of the filter was written")
	}
	l.essence = colored("red", 3)
	l.expect(cause.Noop)
	l.essence = colored("red", 4)
	l.expect(cause.Update, "red-resize(update, 1) spec.size:3->4")
}

// A creation that is in progress when the object leaves the filter continues when it comes back, with MaybeRepeated set.
func TestACreationThatIsLeftGoesOnLater(t *testing.T) {
	l := newLife(t, declared("red-make", cause.Create, onlyRed), declared("all", cause.Update))
	l.essence = colored("red", 1)
	l.fail("red-make", 5*time.Minute)
	l.expect(cause.Create, "red-make(create, 1)")
	l.essence = colored("blue", 1)
	l.expect(cause.Noop)
	l.essence = colored("red", 1)
	l.succeed("red-make")
	l.expect(cause.Update, "red-make(create, 2)", "all(update, 1) spec.color:blue->red")
	l.expect(cause.Noop)
}

// A creation continues with its next attempt when the object comes back, so that the limits of its handler still hold.
func TestTheAttemptsOfACreationAreKeptOutsideItsFilter(t *testing.T) {
	kind := handler.Kind{Handlers: []handler.Declaration{declared("red-make", cause.Create, onlyRed)}}
	for name, test := range map[string]struct {
		outcome        record.Outcome
		attempts, next int
	}{
		"failed once":                              {record.Retry, 1, 2},
		"failed several times":                     {record.Retry, 4, 5},
		"failed, not counted":                      {record.Retry, 0, 2}, // The handler has run, so the next attempt is not the first one.
		"came back, left again without an attempt": {record.Pending, 4, 5},
	} {
		t.Run(name, func(t *testing.T) {
			started := begin().Add(-time.Hour)
			entry := record.Entry{Cause: string(cause.Create), Outcome: test.outcome, Attempts: test.attempts, Started: started, Next: begin().Add(time.Hour)}
			inside := record.New("uid", "g/v1").With("red-make", entry)
			state := handler.State{UID: "uid", APIVersion: "g/v1", Essence: colored("blue", 1), Record: &inside, Now: begin()}
			plan := kind.Decide(state)
			if len(plan.Runs) != 0 || plan.Record.Handlers["red-make"].Outcome != record.Outside {
				t.Fatalf("outside of the filter: runs %v, record %v", plan.Runs, plan.Record.Handlers)
			}
			outside := kind.Settle(plan.Record, state.Essence)
			state.Essence, state.Record = colored("red", 1), &outside
			runs := kind.Decide(state).Runs
			if len(runs) != 1 || runs[0].Attempt != test.next || !runs[0].Started.Equal(started) {
				t.Errorf("runs %v, want attempt %d of a creation that started at %s", runs, test.next, started)
			}
		})
	}
}

// After a lost record nothing is created, whatever the filters match later.
func TestWhatIsLostIsNotCreatedByAFilter(t *testing.T) {
	l := newLife(t, declared("red-make", cause.Create, onlyRed), declared("resize", cause.Update, "spec.size"))
	l.essence, l.settled = colored("blue", 1), true
	l.expect(cause.Lost)
	l.essence = colored("red", 1)
	l.expect(cause.Noop)
	l.recreate = "please"
	l.expect(cause.Create, "red-make(create, 1)?")
}

// Only objects that match a delete handler have a finalizer. It is removed when they do not match any more.
func TestTheFinalizerFollowsTheFilter(t *testing.T) {
	l := newLife(t, declared("make", cause.Create), declared("unmake", cause.Delete, "spec.size", onlyRed))
	expect := func(marked bool) {
		t.Helper()
		if l.marked != marked {
			t.Errorf("marked: %t, want %t", l.marked, marked)
		}
	}
	l.essence = colored("blue", 1)
	l.expect(cause.Create, "make(create, 1)")
	expect(false)
	l.essence = colored("red", 1)
	l.expect(cause.Noop)
	expect(true)
	l.essence = colored("blue", 1)
	l.expect(cause.Noop)
	expect(false)
	l.essence = colored("red", 1)
	l.expect(cause.Noop)
	l.deleting = true
	l.fail("unmake", time.Minute)
	l.expect(cause.Delete, "unmake(delete, 1)")
	l.essence = colored("blue", 1) // A deletion that has started is finished.
	l.now = l.now.Add(time.Hour)
	l.succeed("unmake")
	l.expect(cause.Delete, "unmake(delete, 2)")
	expect(false)
}

func TestADeletionOfWhatIsNotForTheHandlerIsLetGo(t *testing.T) {
	l := newLife(t, declared("make", cause.Create), declared("unmake", cause.Delete, onlyRed), declared("unmake-all", cause.Delete))
	l.essence = colored("blue", 1)
	l.expect(cause.Create, "make(create, 1)")
	l.deleting = true
	l.expect(cause.Delete, "unmake-all(delete, 1)")
	if l.marked || !l.record().Deleted {
		t.Errorf("the finalizer is set: %s", l.stored)
	}
}

// A resume handler has nothing to resume for an object that did not match it when the process first saw it.
func TestAnObjectIsNotResumedWhenItStartsToMatch(t *testing.T) {
	l := newLife(t, declared("make", cause.Create), declared("greet", cause.Resume, "spec.size", onlyRed))
	l.essence = colored("blue", 1)
	l.resumed["greet"] = true
	l.expect(cause.Create, "make(create, 1)")
	l.restart()
	l.expect(cause.Noop)
	l.essence = colored("red", 1)
	l.expect(cause.Noop)
	l.restart()
	l.expect(cause.Resume, "greet(resume, 1)")
}

// Scenario 38 (docs/concepts/scenarios.md): at a creation, a field handler runs if it asks for that and if the field exists.
func TestAtCreation(t *testing.T) {
	l := newLife(t, declared("make", cause.Create), declared("color", cause.Update, "spec.color", atCreation), declared("size", cause.Update, "spec.size"))
	l.essence = spec("color", "red", "size", 1)
	l.expect(cause.Create, "make(create, 1)", "color(create, 1)")
	l.expect(cause.Noop)
	l.essence = spec("color", "blue", "size", 2)
	l.expect(cause.Update, "color(update, 1) spec.color:red->blue", "size(update, 1) spec.size:1->2")

	l = newLife(t, declared("color", cause.Update, "spec.color", atCreation))
	l.essence = spec("size", 1)
	l.expect(cause.Create)
	l.expect(cause.Noop)
	l.essence = spec("size", 1, "color", "red")
	l.expect(cause.Update, "color(update, 1) spec:<nil>->map[color:red]")
}

// Field handlers at a creation behave as create handlers do: retries keep the reason, the creation waits for them, one that failed
// permanently runs again when its view changes, and a token calls them again.
func TestAtCreationIsACreation(t *testing.T) {
	l := newLife(t, declared("color", cause.Update, "spec.color", atCreation), declared("size", cause.Update, "spec.size"))
	l.essence = colored("red", 1)
	l.fail("color", 5*time.Minute)
	l.expect(cause.Create, "color(create, 1)")
	l.essence = colored("red", 2)
	l.expect(cause.Create)
	l.results["color"] = handler.Result{Outcome: record.Failed, Message: "never"}
	l.essence = colored("blue", 2)
	l.expect(cause.Create, "color(create, 2)")
	l.expect(cause.Noop)
	l.succeed("color")
	l.essence = colored("green", 2)
	l.expect(cause.Create, "color(create, 1)?")
	l.expect(cause.Noop)
	l.essence = colored("black", 2)
	l.expect(cause.Update, "color(update, 1) spec.color:green->black")
	l.recreate = "please"
	l.expect(cause.Create, "color(create, 1)?")
	l.expect(cause.Noop)
}

func TestAtCreationWhenAFilterStartsToMatch(t *testing.T) {
	l := newLife(t, declared("make", cause.Create), declared("size", cause.Update, "spec.size", atCreation, onlyRed))
	l.essence = colored("blue", 1)
	l.expect(cause.Create, "make(create, 1)")
	l.essence = colored("red", 1)
	l.expect(cause.Update, "size(create, 1)")
	l.expect(cause.Noop)
	l.essence = colored("blue", 2)
	l.expect(cause.Noop)
	l.essence = colored("red", 3) // It was created before, so it starts from the current state.
	l.expect(cause.Noop)
	l.essence = colored("red", 4)
	l.expect(cause.Update, "size(update, 1) spec.size:3->4")
}

// Scenarios 42 and 44 (docs/concepts/scenarios.md): a change that a handler's filters do not match counts as seen.
func TestChangesThatAreNotAnsweredAreSeen(t *testing.T) {
	move := declared("move", cause.Update, "spec.color")
	move.Changes = []filter.Change{{Path: object.Path{"spec", "color"}, From: filter.Equals("red"), To: filter.Equals("green")}}
	l := newLife(t, declared("make", cause.Create), move, declared("size", cause.Update, "spec.size"))
	l.essence = colored("red", 1)
	l.expect(cause.Create, "make(create, 1)")
	l.essence = colored("blue", 1)
	l.expect(cause.Update)
	l.expect(cause.Noop)
	l.essence = colored("green", 1) // From blue, not from red.
	l.expect(cause.Update)
	l.essence = colored("red", 1)
	l.expect(cause.Update)
	l.essence = colored("green", 2)
	l.fail("size", 5*time.Minute)
	l.expect(cause.Update, "move(update, 1) spec.color:red->green", "size(update, 1) spec.size:1->2")
	l.expect(cause.Update)
}

// Scenario 50 (docs/concepts/scenarios.md): a handler that an upgrade adds looks at a status field that the records do not cover. It
// does not run for the current value, only for changes of it.
func TestAStatusHandlerThatIsNewMakesNoUpdate(t *testing.T) {
	for name, phase := range map[string]any{"with a value": "Ready", "without a value": nil} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, declared("make", cause.Create), declared("resize", cause.Update, "spec.size"))
			l.expect(cause.Create, "make(create, 1)")
			l.kind.Handlers = append(l.kind.Handlers, declared("phase", cause.Update, "status.phase", "spec.b"))
			if phase != nil {
				l.essence = object.With(l.essence, object.Path{"status", "phase"}, phase)
			}
			l.restart()
			l.expect(cause.Noop)
			writes := l.writes
			l.restart()
			l.expect(cause.Noop)
			if writes != 2 || l.writes != writes {
				t.Errorf("%d and then %d writes; want one for the record and one for the starting point of the new handler", writes, l.writes)
			}
			l.essence = object.With(l.essence, object.Path{"status", "phase"}, "Failed")
			if _, runs := l.pass(); len(runs) != 1 || !strings.HasPrefix(runs[0], "phase(update, 1) status") {
				t.Errorf("runs: %q", runs)
			}
		})
	}
}

// A handler that an upgrade extends to a status field still sees changes of its other fields that it has not handled.
func TestAHandlerThatIsWidenedToTheStatusStillSeesWhatChangedMeanwhile(t *testing.T) {
	l := newLife(t, declared("make", cause.Create), declared("watch", cause.Update, "spec.a"))
	l.expect(cause.Create, "make(create, 1)")
	l.kind.Handlers[1] = declared("watch", cause.Update, "spec.a", "status.phase")
	l.essence = object.With(spec("a", 2, "b", 1), object.Path{"status", "phase"}, "Ready")
	l.expect(cause.Update, "watch(update, 1) spec.a:1->2")
	l.expect(cause.Noop)
}

// Scenario 47 (docs/concepts/scenarios.md): if a filter fails nothing is planned, but the plan has the record.
func TestAFilterThatPanics(t *testing.T) {
	broken := declared("broken", cause.Create)
	broken.Scope = filter.When(func(object.Body) bool { panic("no luck") })
	l := newLife(t, declared("make", cause.Create), broken)
	plan := l.kind.Decide(l.state())
	if plan.Err == nil || !strings.Contains(plan.Err.Error(), `handler "broken"`) || len(plan.Runs) != 0 {
		t.Errorf("runs %v, error %v", plan.Runs, plan.Err)
	}
	if plan.Record.UID != "uid" || len(plan.Record.Handlers) != 2 {
		t.Errorf("the record is %v", plan.Record)
	}
}

// A filter sees the names of the object, which are not part of its essence.
func TestAFilterSeesNames(t *testing.T) {
	named := declared("named", cause.Create)
	named.Scope = filter.When(func(body object.Body) bool {
		return object.Text(body, "metadata", "name") == "one" && object.Text(body, "metadata", "namespace") == "default"
	})
	l := newLife(t, named)
	state := l.state()
	for name, want := range map[string]int{"one": 1, "two": 0} {
		state.Namespace, state.Name = "default", name
		if plan := l.kind.Decide(state); len(plan.Runs) != want || plan.Err != nil {
			t.Errorf("%s: %d runs, %v", name, len(plan.Runs), plan.Err)
		}
	}
}
