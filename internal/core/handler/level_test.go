package handler_test

import (
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Reconcile looks at a state once in each process and whenever its view changes.
func TestALevelIsLookedAtOnceInEachProcessAndWhenItChanges(t *testing.T) {
	l := newLife(t, declared("sync", cause.Reconcile, "spec.a"), declared("make", cause.Create), declared("change", cause.Update))
	l.expect(cause.Create, "make(create, 1)", "sync(reconcile, 1)") // After the others, regardless of the order of declaration.
	l.expect(cause.Noop)
	l.essence = spec("a", 1, "b", 2)
	l.expect(cause.Update, "change(update, 1) spec.b:1->2")
	l.essence = spec("a", 2, "b", 2)
	l.expect(cause.Update, "change(update, 1) spec.a:1->2", "sync(reconcile, 1)")
	before := l.writes
	l.restart()
	l.expect(cause.Reconcile, "sync(reconcile, 1)")
	l.expect(cause.Noop)
	if l.writes != before {
		t.Errorf("%d writes at the restart", l.writes-before)
	}
}

// Level-triggered handlers store no record, not even of failures.
func TestLevelsAloneHaveNoRecord(t *testing.T) {
	l := newLife(t, declared("sync", cause.Reconcile))
	l.fail("sync", time.Minute)
	l.expect(cause.Reconcile, "sync(reconcile, 1)")
	if wake := l.kind.Decide(l.state()).Wake; !wake.Equal(l.now.Add(time.Minute)) {
		t.Errorf("wakes at %s", wake)
	}
	l.now = l.now.Add(time.Minute)
	l.expect(cause.Reconcile, "sync(reconcile, 2)")
	l.essence = spec("a", 3) // An edit ends the backoff; attempts are still counted.
	l.expect(cause.Reconcile, "sync(reconcile, 3)")
	l.results["sync"] = handler.Result{Outcome: record.Waiting, Delay: time.Hour}
	l.now = l.now.Add(time.Minute)
	l.expect(cause.Reconcile, "sync(reconcile, 4)")
	l.expect(cause.Reconcile)
	l.essence = spec("a", 4)
	l.results["sync"] = handler.Result{Outcome: record.Failed}
	l.expect(cause.Reconcile, "sync(reconcile, 4)") // An edit ends a wait, since there is another state to look at.
	l.expect(cause.Noop)
	l.essence = spec("a", 5)
	l.succeed("sync")
	l.expect(cause.Reconcile, "sync(reconcile, 1)")
	l.settled = true
	l.expect(cause.Noop) // Without a record, a lost one has no meaning.
	l.deleting = true
	l.expect(cause.Free)
	if l.stored != "" || l.writes != 0 {
		t.Errorf("%d writes, the last %s", l.writes, l.stored)
	}
}

// After a lost record, resume handlers and Reconcile run.
func TestALostRecordRunsLevels(t *testing.T) {
	l := newLife(t, declared("make", cause.Create), declared("greet", cause.Resume), declared("sync", cause.Reconcile))
	l.settled = true
	l.expect(cause.Lost, "greet(resume, 1)", "sync(reconcile, 1)")
}

// A handler's own changes count as seen by it.
func TestALevelDoesNotCallItself(t *testing.T) {
	kind := handler.Kind{Handlers: []handler.Declaration{declared("sync", cause.Reconcile)}}
	state := handler.State{UID: "uid", Essence: spec("a", 1), Now: time.Unix(0, 0)}
	run := kind.Decide(state).Runs[0]
	left := spec("a", 2)
	state.Levels = map[string]record.Entry{"sync": kind.FoldLevel("uid", run, handler.Result{Outcome: record.Done}, left, state.Now)}
	state.Essence = left
	if plan := kind.Decide(state); len(plan.Runs) != 0 {
		t.Errorf("its own change triggers it: %v", plan.Runs)
	}
}

// Scenario 11 (docs/concepts/scenarios.md): optional delete handlers set no finalizer. They run if another finalizer keeps the object.
func TestAnOptionalDeleteHandlerHoldsNothing(t *testing.T) {
	optional := declared("tell", cause.Delete)
	optional.Optional = true
	l := newLife(t, declared("make", cause.Create), optional)
	l.expect(cause.Create, "make(create, 1)")
	if l.marked {
		t.Error("there is a finalizer")
	}
	l.deleting = true
	l.expect(cause.Delete, "tell(delete, 1)")
	l.restart()
	l.expect(cause.Free)
}

// Scenario 15 (docs/concepts/scenarios.md): an operator without delete handlers and without records removes an old finalizer.
func TestAnOldFinalizerIsTakenAwayWithoutARecord(t *testing.T) {
	for name, deleting := range map[string]bool{"alive": false, "being deleted": true} {
		l := newLife(t, declared("sync", cause.Reconcile))
		l.marked, l.deleting = true, deleting
		l.pass()
		if l.marked || l.stored != "" {
			t.Errorf("%s: marked %t, record %q", name, l.marked, l.stored)
		}
	}
}

// Scenarios 12 and 13 (docs/concepts/scenarios.md): an object deleted while the operator was down is resumed only by handlers that ask
// for that.
func TestResumeHandlersThatAskForItSeeDeletedObjects(t *testing.T) {
	asking := declared("see", cause.Resume)
	asking.AlsoDeleting = true
	l := newLife(t, declared("make", cause.Create), declared("greet", cause.Resume), asking, declared("unmake", cause.Delete))
	l.resumed = map[string]bool{"greet": true, "see": true}
	l.expect(cause.Create, "make(create, 1)")
	l.restart()
	l.deleting = true
	l.expect(cause.Delete, "see(resume, 1)", "unmake(delete, 1)")
	if l.marked {
		t.Error("not released")
	}
}
