package einmaltest

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
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
}

// String tells it as the report of a failed test does.
func (f *Finding) String() string {
	return "when this goes wrong: " + f.Schedule + "\n- " + strings.Join(f.Broken, "\n- ") + "\n"
}

// Explore plays a scenario once with nothing that goes wrong, and then again for each single thing that can go wrong at
// each point where the operator asks something of the world: each request to the API server but the lists and watches of
// its cache, and each Effect. With the option Schedules it goes on with pairs. It fails the test when in any of them
//
//   - the scenario's own expectations fail, or the operator cannot run;
//   - other objects are left than in the run in which nothing goes wrong, or an Outcome is another; times, uids and the
//     values of Secrets are not compared;
//   - an Effect, or a value in a Secret that the operator wrote, changes more often than in that run: something was
//     generated twice;
//   - a handler succeeds more often for an object than in that run, beyond the once that a crash can repeat, or than two
//     replicas do; or fails more often, where nothing that goes wrong can be the reason;
//   - what another writer wrote into the metadata or the status of a handled object is lost;
//   - the operator writes the objects that it handles more often than in that run, beyond what the fault costs.
//
// It also fails when less than half of the points are met again: then names are made by chance, in the scenario or in a
// handler, and little was tried.
//
// It changes how the test process collects garbage: less often, unless the environment variable GOGC says how often.
//
// A goroutine of the operator that outlives it ends the test process with a stack: the testing/synctest package says so.
// The report has the shortest schedule found and a command that plays just that one.
func Explore(t *testing.T, scenario Scenario, options ...Option) {
	t.Helper()
	if text := os.Getenv(ReplayVariable); text != "" {
		replay(t, scenario, text)
		return
	}
	finding, played := search(t, scenario, options)
	if finding == nil {
		t.Logf("%s: each ends as when nothing goes wrong", played)
		return
	}
	quoted := strings.ReplaceAll(finding.Schedule, "'", `'\''`)
	t.Errorf("%splay it again: %s='%s' go test -run '^%s$' .", finding, ReplayVariable, quoted, t.Name())
}

// Search is Explore for what is meant to break: it returns what Explore would fail with, or nil.
func Search(t *testing.T, scenario Scenario, options ...Option) *Finding {
	t.Helper()
	finding, _ := search(t, scenario, options)
	return finding
}

// explorer plays the schedules of one scenario.
type explorer struct {
	scenario    Scenario
	settings    settings
	definitions simulation.Definitions
	clean       result

	mu sync.Mutex
	// found is the finding that comes first, at is its place among the schedules.
	found *Finding
	at    int
	// used are the rights that were used in any schedule.
	used map[string]bool
	// played counts the schedules, met those of which every point was reached.
	played, met int
}

// search returns what it has found, and says how much was played.
func search(t *testing.T, scenario Scenario, options []Option) (*Finding, string) {
	t.Helper()
	e := &explorer{scenario: scenario, settings: newSettings(options), used: map[string]bool{}}
	e.clean = play(t, scenario, e.setup(nil))
	e.use(e.clean.rights)
	if len(e.clean.failures) > 0 {
		return &Finding{Schedule: simulation.Schedule{}.String(), Broken: e.clean.failures}, "1 schedule played"
	}
	singles := e.settings.singles(e.clean)
	e.playAll(t, "one fault", singles)
	if e.found == nil && 2*e.met < len(singles) {
		e.found = &Finding{Schedule: simulation.Schedule{}.String(), Broken: []string{fmt.Sprintf(
			"only %d of %d points were met again: a scenario does the same each time, and names nothing by chance", e.met, len(singles))}}
	}
	if e.found == nil {
		e.playAll(t, "two faults", e.settings.pairs(singles))
	}
	if e.found == nil && e.settings.noSpareRights {
		e.found = e.spareRights()
	}
	if e.found != nil {
		e.found.Schedules = e.played
	}
	return e.found, fmt.Sprintf("%d schedules played, %d of them met", e.played, e.met)
}

// use notes the rights that a run used.
func (e *explorer) use(rights map[string]bool) {
	for right, used := range rights {
		if used {
			e.used[right] = true
		}
	}
}

// spareRights complains about rights that nothing needs.
func (e *explorer) spareRights() *Finding {
	var spare []string
	for _, right := range slices.Sorted(maps.Keys(e.clean.rights)) {
		if !e.used[right] {
			spare = append(spare, "the right to "+right+" was never used: take it from einmal.Access or einmal.Applies, or play what needs it")
		}
	}
	if len(spare) == 0 {
		return nil
	}
	return &Finding{Schedule: simulation.Schedule{}.String(), Broken: spare}
}

func (e *explorer) setup(schedule simulation.Schedule) simulation.Setup {
	return simulation.Setup{Schedule: schedule, Definitions: &e.definitions, Log: slog.New(slog.DiscardHandler)}
}

// playAll plays schedules, several at a time, and keeps the first finding.
func (e *explorer) playAll(t *testing.T, title string, schedules []simulation.Schedule) {
	t.Helper()
	t.Run(title, func(t *testing.T) {
		for i, schedule := range schedules {
			t.Run(schedule.String(), func(t *testing.T) {
				t.Parallel()
				e.playOne(t, i, schedule)
			})
		}
	})
}

func (e *explorer) playOne(t *testing.T, i int, schedule simulation.Schedule) {
	t.Helper()
	e.mu.Lock()
	late := e.found != nil && e.at < i
	e.mu.Unlock()
	if late {
		return // One finding at a time.
	}
	found := play(t, e.scenario, e.setup(schedule))
	broken := judge(e.clean, found, schedule)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.use(found.rights)
	e.played++
	if len(found.missed(schedule)) == 0 {
		e.met++
	}
	if len(broken) > 0 && (e.found == nil || i < e.at) {
		e.found, e.at = &Finding{Schedule: schedule.String(), Broken: broken}, i
	}
}

// replay plays one schedule and tells all about it.
func replay(t *testing.T, scenario Scenario, text string) {
	t.Helper()
	schedule, err := simulation.ParseSchedule(text)
	if err != nil {
		t.Fatalf("%s: %v", ReplayVariable, err)
	}
	e := &explorer{scenario: scenario}
	e.clean = play(t, scenario, e.setup(nil))
	setup := e.setup(schedule)
	setup.Log = logTo(t)
	found := play(t, scenario, setup)
	for _, point := range found.points {
		t.Logf("asked: %s", point)
	}
	for _, at := range found.missed(schedule) {
		t.Logf("this run did not come to %s", at)
	}
	broken := judge(e.clean, found, schedule)
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
		if fault.At.N > r.events[fault.At.What] && !slices.Contains(r.points, fault.At) {
			missed = append(missed, fault.At)
		}
	}
	return missed
}
