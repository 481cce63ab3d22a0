package einmaltest

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// Run plays a scenario once, without faults. The log of the operator goes to the log of the test. Run fails when the scenario does, when a
// handler does not succeed, when a right is missing, and when something is unfinished at the end: see World.AllowUnfinished,
// World.AllowForbidden and World.AllowDeleting.
func Run(t *testing.T, scenario Scenario) {
	t.Helper()
	found := play(t, scenario, simulation.Setup{Definitions: &simulation.Definitions{}, Log: logTo(t)})
	for _, failure := range found.complaints() {
		t.Error(failure)
	}
}

// settling is how much time goes by after a scenario, so that a fault of its last step is over.
const settling = 10 * time.Minute

// result is how a run has ended.
type result struct {
	failures []string
	// simulatorFailures are those of the failures that the simulation found, and not the scenario.
	simulatorFailures []string
	objects           map[string]string
	// objectsAfterLoss are the objects without what a lost record cannot tell.
	objectsAfterLoss map[string]string
	// takenAway are the children that faults have deleted or replaced, by the names of objects.
	takenAway map[string]bool
	outcomes  map[string]string
	// successes and retries count the attempts of handlers that were done and that failed, by handler and object; those
	// that a new process may repeat are left out.
	successes, retries map[string]int
	// completed counts the attempts that were done, by handler and object. Those for other reasons than a creation, an update or a deletion count once.
	completed map[string]int
	// failedForGood are the handlers whose last attempt has failed for good, by handler and object.
	failedForGood map[string]bool
	// writes counts the operator's own writes of each name, valueChanges the values that idempotent effects and Secrets have had one after
	// the other, effects how often the other effects happened.
	writes, valueChanges, effects map[string]int
	// callers are the calls of handlers that may have caused an effect, by the name of the effect.
	callers map[string][]Call
	// secretDigests are digests of the values in Secrets, stableSecrets those that are the same in two runs without faults.
	secretDigests, stableSecrets map[string]string
	// times are those that rules limit.
	times map[string]limitedTime
	// rights says of each right that handlers asked for whether it was used. forbidden are requests without a right that the
	// scenario does not allow, unfinished is what it does not allow at the end.
	rights                map[string]bool
	forbidden, unfinished []string
	// handlers are the ids of all handlers, calledHandlers those that were called.
	handlers       []string
	calledHandlers map[string]bool
	// notCompared is what is not compared.
	notCompared []string
	points      []simulation.Point
	// idlePoints are the children that exist while nothing happens.
	idlePoints []simulation.Point
	// watchEvents counts the events that watches delivered, by resource.
	watchEvents map[string]int
	// userEdits are the patches of the scenario, by object. withoutTarget are faults that had nothing to change.
	userEdits     map[string][]string
	withoutTarget []string
	// upgrades is set where the scenario has a previous version.
	upgrades bool
	// previousPoints are the points of a run of the previous version.
	previousPoints []simulation.Point
	processes      int
}

// play plays a scenario in a bubble of its own.
func play(t *testing.T, scenario Scenario, setup simulation.Setup) (found result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &World{TB: t, outcomes: map[string]string{}, stop: func() {}, setup: setup, quiet: !setup.Log.Enabled(t.Context(), slog.LevelError)}
		w.setup.Failed = w.report
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer w.survive()
			scenario(w)
		}()
		<-ended
		found = w.end()
	})
	return found
}

// survive makes a panic of the scenario a failure of its run.
func (w *World) survive() {
	if value := recover(); value != nil {
		w.fail(fmt.Sprintf("the scenario panicked: %v\n%s", value, debug.Stack()))
	}
}

// end notes how the run has ended, and ends the world.
func (w *World) end() result {
	found := result{
		outcomes: w.outcomes, successes: map[string]int{}, retries: map[string]int{}, writes: map[string]int{}, completed: map[string]int{}, failedForGood: map[string]bool{},
		calledHandlers: map[string]bool{},
	}
	if w.sim == nil {
		w.fail("the scenario has not started an operator")
		found.failures, found.simulatorFailures = w.failed()
		return found
	}
	w.passIdle(settling)
	var err error
	if found.objects, err = w.sim.Objects(); err != nil {
		w.fail(err.Error())
	}
	if len(w.setup.Schedule) == 0 || w.setup.Schedule.Count(simulation.Kind.Wipe) > 0 {
		if found.objectsAfterLoss, err = w.sim.ObjectsAfterLoss(reportOfLoss(w.setup.Schedule)...); err != nil {
			w.fail(err.Error())
		}
	}
	if found.secretDigests, err = w.sim.SecretValues(); err != nil {
		w.fail(err.Error())
	}
	calls := w.sim.Calls()
	w.stop()
	w.sim.Stop()
	if len(w.setup.Schedule) == 0 {
		found.unfinished = w.unfinished(calls, w.sim.Calls()[len(calls):])
	}
	if !w.allowed.forbidden {
		found.forbidden = w.sim.Refused()
	}
	found.points, found.watchEvents, found.valueChanges, found.effects = w.sim.Points(), w.sim.Events(), w.sim.Values(), w.sim.Effects()
	found.idlePoints = w.sim.IdlePoints()
	found.callers = map[string][]Call{}
	for effect, attempts := range w.sim.Callers() {
		found.callers[effect] = callsOf(attempts)
	}
	found.userEdits, found.withoutTarget, found.takenAway = w.sim.Edits(), w.sim.WithoutTarget(), w.sim.TakenAway()
	found.upgrades, found.handlers = w.previous != nil, w.sim.Handlers()
	found.processes, found.rights, found.notCompared = w.sim.Processes(), w.sim.Rights(), w.sim.NotCompared()
	w.count(&found)
	found.times = w.limitedTimes()
	w.sim.End()
	w.reacting.Wait()
	found.failures, found.simulatorFailures = w.failed()
	return found
}

// count counts attempts and writes.
func (w *World) count(found *result) {
	for _, call := range w.Calls() {
		name := call.handling()
		found.calledHandlers[call.Handler] = true
		switch {
		case call.Outcome == string(record.Done) && call.counts():
			found.completed[name]++
		case call.Outcome == string(record.Done): // How often the others are called depends on time, and on the processes.
			found.completed[name] = max(found.completed[name], 1)
		}
		found.failedForGood[name] = call.Outcome == string(record.Failed)
		switch {
		case !call.counts():
		case call.Outcome == string(record.Done):
			found.successes[name]++
		case call.Outcome == string(record.Retry):
			found.retries[name]++
		}
	}
	for _, made := range w.sim.Writes() {
		if made.Handler == "" { // How often a handler writes that waits for something depends on how long it takes.
			found.writes[made.String()]++
		}
	}
}

// limitedTime is a time, and how far from it that of another run may be.
type limitedTime struct {
	at     time.Time
	within time.Duration
}

// limitedTimes are the times of fields with the rule Within.
func (w *World) limitedTimes() map[string]limitedTime {
	found := map[string]limitedTime{}
	for _, field := range w.setup.Times {
		if field.Once {
			continue
		}
		for name, text := range w.sim.Field(field) {
			if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
				found[name] = limitedTime{at, field.Within}
			} else {
				w.fail(fmt.Sprintf("option CompareTime: %s: %q is not a time in the form of RFC 3339", name, text))
			}
		}
	}
	return found
}

// logTo is a log that goes to the log of a test.
func logTo(t *testing.T) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}
