package einmaltest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// ReplayVariable is the environment variable that makes Explore play one schedule only, with the log of the operator.
const ReplayVariable = "EINMALTEST_REPLAY"

// Finding is the shortest schedule that was found to break a scenario.
type Finding struct {
	// Schedule is what goes wrong, by name; "nothing goes wrong" if the scenario fails by itself.
	Schedule string
	// Broken are the expectations that do not hold then, one each.
	Broken []string
	// Schedules is how many had been played.
	Schedules int
	// unplayed is how many more there were for which no time was left.
	unplayed int
}

// String tells it as the report of a failed test does.
func (f *Finding) String() string {
	text := "when this goes wrong: " + f.Schedule + "\n- " + strings.Join(f.Broken, "\n- ") + "\n"
	if strings.HasPrefix(f.Schedule, string(simulation.CrashThenWiped)) {
		text += "hint: a change that was not handled yet is forgotten with the record; docs/concepts/changed-identity.md shows how to keep what exists outside in the status\n"
	}
	if f.unplayed > 0 && f.replayable() {
		text += fmt.Sprintf("%d further schedules were not played for lack of time\n", f.unplayed)
	}
	return text
}

// replayable reports whether the finding is about a schedule that can be played by itself.
func (f *Finding) replayable() bool {
	_, err := simulation.ParseSchedule(f.Schedule)
	return err == nil
}

// Explore plays a scenario twice without faults, and then again for each single fault of each Dimension at each point. Points are the
// requests of the operator to the API server, but the lists and watches of its cache, and each effect of a Process. Cached reads are no
// points, since they do not fail: StaleCache lets them be old.
//
// Of the faults that newer dimensions add, and of the second faults of Recovery, Explore plays a budget that depends on the size of the
// scenario: the first and the last point of each kind of fault, and others spread evenly over the points. Of second faults it plays those that are
// spread evenly. With the option Schedules it goes on with pairs. Environment variables change how much it plays:
//
//   - EINMALTEST_ALL: every fault at every point, or a share of that (see AllVariable).
//   - EINMALTEST_QUICK: only a crash before and after each write and each effect, and a few other schedules; no pairs. Then it does not check
//     NoSpareRights. This takes about a tenth of the time. It must not be set together with EINMALTEST_ALL.
//   - EINMALTEST_SEED: the seed, a decimal number, that chooses the schedules of the budget. It takes precedence over the option Seed.
//
// Explore fails the test when
//
//   - the run without faults is not clean: a handler does not succeed, a right is missing, something is unfinished at the end (see
//     World.AllowUnfinished, AllowForbidden and AllowDeleting), or a second such run ends otherwise;
//   - in any run the scenario's own expectations fail, a right is missing, or the operator cannot run;
//   - other objects are left than without faults, of whatever kind, or an Outcome is another; the report lists what is not compared;
//   - an effect of Process.Effect happens more often than without faults, whatever its value; or the value of an idempotent effect, or
//     of a key in a Secret that the operator wrote, changes more often: something was generated twice;
//   - an effect happens less often than without faults, although the handlers that cause it are done as often. Effects of timers, daemons and
//     Reconcile are found only if they never happen;
//   - a handler succeeds more often for an object than without faults, beyond the once that a crash can repeat, or than two
//     replicas do; or fails more often, where no fault can be the reason;
//   - what another writer wrote into the metadata or the status of a handled object, or the metadata of a child, is lost;
//   - the operator writes the objects that it handles more often than without faults, beyond what the fault costs.
//
// It also fails when less than half of the points are met again: then names are random, in the scenario or in a handler, and little was
// tried. And it fails when the deadline of the test comes before all schedules are played: it says how many it has played.
//
// Explore says beforehand how many schedules it plays, and shows its progress with -v. It changes how the test process collects garbage: less
// often, unless the environment variable GOGC says how often.
//
// A goroutine of the operator that outlives it ends the test process with a stack: the testing/synctest package says so.
// The report has the shortest schedule found and a command that plays just that one.
func Explore(t *testing.T, scenario Scenario, options ...Option) {
	t.Helper()
	if text := os.Getenv(ReplayVariable); text != "" {
		replay(t, scenario, text, options)
		return
	}
	finding, played, leftOut := search(t, scenario, options)
	if len(leftOut) > 0 {
		t.Logf("not compared:\n- %s", strings.Join(leftOut, "\n- "))
	}
	if finding == nil {
		t.Logf("%s; each run ended as without faults", played)
		return
	}
	if !finding.replayable() {
		t.Error(finding)
		return
	}
	quoted := strings.ReplaceAll(finding.Schedule, "'", `'\''`)
	t.Errorf("%splay it again: %s='%s' go test -run '^%s$' .", finding, ReplayVariable, quoted, t.Name())
}

// Search is Explore for what is meant to break: it returns the Finding that Explore would fail with, or nil.
func Search(t *testing.T, scenario Scenario, options ...Option) *Finding {
	t.Helper()
	finding, _, _ := search(t, scenario, options)
	return finding
}

// replay plays one schedule and logs all about it.
func replay(t *testing.T, scenario Scenario, text string, options []Option) {
	t.Helper()
	schedule, err := simulation.ParseSchedule(text)
	if err != nil {
		t.Fatalf("%s: %v", ReplayVariable, err)
	}
	e := newExplorer(scenario, options)
	if faulty := e.playClean(t); faulty != nil && len(schedule) > 0 {
		t.Fatal(faulty)
	}
	setup := e.setup(schedule)
	setup.Log = logTo(t)
	found := play(t, scenario, setup)
	for _, point := range found.points {
		t.Logf("asked: %s", point)
	}
	for _, at := range found.missed(schedule) {
		t.Logf("this run did not come to %s", at)
	}
	broken := e.judge(found, schedule)
	if len(broken) == 0 {
		t.Logf("it ends as when nothing goes wrong: %s", schedule)
		return
	}
	t.Error(fmt.Stringer(&Finding{Schedule: schedule.String(), Broken: broken}))
}

// missed lists the points of a schedule that the run did not come to.
func (r result) missed(schedule simulation.Schedule) []simulation.Point {
	var missed []simulation.Point
	for _, fault := range schedule {
		if fault.At.N > r.watchEvents[fault.At.What] && !slices.Contains(r.points, fault.At) && !slices.Contains(r.idlePoints, fault.At) {
			missed = append(missed, fault.At)
		}
	}
	return missed
}
