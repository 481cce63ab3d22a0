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

// Run plays a scenario once, with nothing that goes wrong. What the operator logs goes to the log of the test.
func Run(t *testing.T, scenario Scenario) {
	t.Helper()
	found := play(t, scenario, simulation.Setup{Definitions: &simulation.Definitions{}, Log: logTo(t)})
	for _, failure := range found.failures {
		t.Error(failure)
	}
}

// settling is how much time goes by after a scenario: what went wrong in its last step is to be over.
const settling = 10 * time.Minute

// result is how a run has ended.
type result struct {
	failures []string
	objects  map[string]string
	// unmarked are the objects without what a lost record cannot tell.
	unmarked map[string]string
	outcomes map[string]string
	// successes and retries count the attempts of handlers that were done and that failed, by handler and object; those
	// that a new process may repeat are left out.
	successes, retries map[string]int
	// writes counts the operator's own writes of each name, values those that effects and Secrets have had.
	writes, values map[string]int
	// rights tells of each right that handlers asked for whether it was used.
	rights    map[string]bool
	points    []simulation.Point
	events    map[string]int
	processes int
}

// play plays a scenario in a bubble of its own.
func play(t *testing.T, scenario Scenario, setup simulation.Setup) (found result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &World{TB: t, outcomes: map[string]string{}, stop: func() {}, setup: setup, quiet: !setup.Log.Enabled(t.Context(), slog.LevelError)}
		w.setup.Failed = func(err error) { w.fail(err.Error()) }
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
	found := result{outcomes: w.outcomes, successes: map[string]int{}, retries: map[string]int{}, writes: map[string]int{}}
	if w.sim == nil {
		w.fail("the scenario has not started an operator")
		found.failures = w.failed()
		return found
	}
	w.sim.Pass(settling)
	var err error
	if found.objects, err = w.sim.Objects(); err != nil {
		w.fail(err.Error())
	}
	if len(w.setup.Schedule) == 0 || w.setup.Schedule.Count(simulation.Kind.Wipe) > 0 {
		if found.unmarked, err = w.sim.ObjectsAfterLoss(); err != nil {
			w.fail(err.Error())
		}
	}
	w.stop()
	w.sim.Stop()
	found.points, found.events, found.values = w.sim.Points(), w.sim.Events(), w.sim.Values()
	found.processes, found.rights = w.sim.Processes(), w.sim.Rights()
	for _, call := range w.Calls() {
		name := fmt.Sprintf("%s of %s %s", call.Handler, call.Kind, call.object())
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
	w.sim.End()
	w.reacting.Wait()
	found.failures = w.failed()
	return found
}

// logTo is a log that goes to the log of a test.
func logTo(t *testing.T) *slog.Logger {
	t.Helper()
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}
