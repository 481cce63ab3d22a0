package einmaltest

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// explorer plays the schedules of one scenario.
type explorer struct {
	scenario    Scenario
	settings    settings
	definitions simulation.Definitions
	digestKey   []byte
	clean       result

	mu sync.Mutex
	// finding is the one that comes first, findingIndex its place among the schedules.
	finding      *Finding
	findingIndex int
	// usedRights are the rights that were used in any schedule.
	usedRights map[string]bool
	// calledHandlers are the handlers that were called in any schedule.
	calledHandlers map[string]bool
	// played counts the schedules, unplayed those for which no time was left.
	played, unplayed int
	// missedSchedules are the schedules of which a point was not reached.
	missedSchedules []string
	// withoutTarget are the faults that had nothing to change.
	withoutTarget []string
	// secondFaults are second faults at points that a first fault has led to, by what they do where.
	secondFaults map[string][]simulation.Schedule
	lastProgress time.Time
}

func newExplorer(scenario Scenario, options []Option) *explorer {
	return &explorer{
		scenario: scenario, settings: newSettings(options), digestKey: []byte(rand.Text()),
		usedRights: map[string]bool{}, calledHandlers: map[string]bool{}, secondFaults: map[string][]simulation.Schedule{}, lastProgress: time.Now(),
	}
}

// search returns what it has found, how much was played, and what is not compared.
func search(t *testing.T, scenario Scenario, options []Option) (found *Finding, played string, leftOut []string) {
	t.Helper()
	e := newExplorer(scenario, options)
	if faulty := e.playClean(t); faulty != nil {
		return faulty, "", nil
	}
	if faulty := e.playPrevious(t); faulty != nil {
		return faulty, "", nil
	}
	first := e.settings.plan(e.clean)
	singles := slices.Concat(first.always, first.sampled)
	t.Logf("playing %d schedules: %d, and a sample of %d out of %d (%s=1 plays all; seed %d); then faults during recovery",
		len(singles), len(first.always), len(first.sampled), first.others, AllVariable, e.settings.seed)
	e.playAll(t, "one fault", singles)
	if e.finding == nil && 2*len(e.missedSchedules) > len(singles) {
		e.finding = failIfFaulty([]string{fmt.Sprintf("only %d of %d schedules met their points again: a scenario does the same each time, and names nothing at random; not met: %s",
			len(singles)-len(e.missedSchedules), len(singles), some(e.missedSchedules))})
	}
	if e.finding == nil && e.settings.wants(Recovery) {
		e.playAll(t, "recovery", e.disturbedRecoveries(e.settings.recoveries(len(first.always))))
	}
	if e.finding == nil {
		e.playAll(t, "two faults", e.settings.pairs(first.always))
	}
	if e.finding == nil && e.unplayed > 0 {
		e.finding = &Finding{Schedule: "the deadline of the test", Broken: []string{fmt.Sprintf("%d schedules were played and broke nothing, "+
			"%d were not played for lack of time: raise -timeout, or leave dimensions out with einmaltest.Without", e.played, e.unplayed)}}
	}
	if e.finding == nil && e.settings.noSpareRights && e.settings.budget != quick && e.settings.share.of <= 1 {
		e.finding = e.spareRights()
	}
	if e.finding != nil {
		e.finding.Schedules, e.finding.unplayed = e.played, e.unplayed
	}
	return e.finding, e.summary(), e.clean.notCompared
}

// summary says what was played, what was not met, and what is not compared.
func (e *explorer) summary() string {
	text := fmt.Sprintf("%d schedules played, each came to the point of its fault", e.played)
	if len(e.missedSchedules) > 0 {
		text = fmt.Sprintf("%d schedules played, %d of them came to the point of their fault (not met: %s)", e.played, e.played-len(e.missedSchedules), some(e.missedSchedules))
	}
	if len(e.withoutTarget) > 0 {
		text += fmt.Sprintf("; nothing to change for: %s", some(e.withoutTarget))
	}
	if e.settings.only != nil {
		text += fmt.Sprintf("; played by Only: %v", e.settings.only)
	}
	if len(e.settings.without) > 0 {
		text += fmt.Sprintf("; left out by Without: %v", e.settings.without)
	}
	if uncalled := e.uncalled(); len(uncalled) > 0 {
		text += "; handlers that were never called, so that nothing is known about them: " + some(uncalled)
	}
	if !e.hasEffects() {
		text += "; no effects were seen: work outside of the cluster that does not call Process.Effect is neither disturbed nor counted"
	}
	return text
}

// hasEffects reports whether the operator did something outside of the cluster that Explore sees.
func (e *explorer) hasEffects() bool {
	return slices.ContainsFunc(e.clean.points, func(at simulation.Point) bool { return isEffect(at.What) })
}

// some names the first of many.
func some(names []string) string {
	const first = 5
	if len(names) <= first {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:first], ", "), len(names)-first)
}

// playClean plays the scenario twice without faults, and returns what is wrong then.
func (e *explorer) playClean(t *testing.T) *Finding {
	t.Helper()
	e.clean = play(t, e.scenario, e.setup(nil))
	e.use(e.clean)
	if faulty := failIfFaulty(append(e.settings.mistakes, e.clean.complaints()...)); faulty != nil {
		return faulty
	}
	again := play(t, e.scenario, e.setup(nil))
	e.clean.stableSecrets = steadyValues(e.clean, again)
	return failIfFaulty(slices.Concat(again.complaints(), sameAgain(e.clean, again)))
}

// use notes the rights that a run used, and the handlers that it called.
func (e *explorer) use(run result) {
	for right, used := range run.rights {
		if used {
			e.usedRights[right] = true
		}
	}
	maps.Copy(e.calledHandlers, run.calledHandlers)
}

// uncalled are the handlers that no schedule has called.
func (e *explorer) uncalled() []string {
	return slices.DeleteFunc(slices.Clone(e.clean.handlers), func(id string) bool { return e.calledHandlers[id] })
}

// spareRights complains about rights that nothing needs.
func (e *explorer) spareRights() *Finding {
	var spare []string
	for _, right := range slices.Sorted(maps.Keys(e.clean.rights)) {
		if !e.usedRights[right] {
			spare = append(spare, "the right to "+right+" was never used: take it from einmal.Permissions or einmal.Applies, or play what needs it")
		}
	}
	return failIfFaulty(spare)
}

func (e *explorer) setup(schedule simulation.Schedule) simulation.Setup {
	return simulation.Setup{
		Schedule: schedule, Definitions: &e.definitions, Log: slog.New(slog.DiscardHandler),
		DigestKey: e.digestKey, Times: e.settings.times, Edits: e.clean.userEdits,
	}
}

// playAll plays schedules, several at a time, and keeps the first finding.
func (e *explorer) playAll(t *testing.T, title string, schedules []simulation.Schedule) {
	t.Helper()
	t.Run(title, func(sub *testing.T) {
		for i, schedule := range schedules {
			sub.Run(schedule.String(), func(one *testing.T) {
				one.Parallel()
				if e.worthPlaying(t, i) {
					e.playOne(one, i, schedule)
				}
			})
		}
	})
}

// What Explore leaves of the test's time for its report, and how often it shows its progress.
const (
	timeToReport  = 20 * time.Second
	progressEvery = 10 * time.Second
)

// worthPlaying reports whether a schedule can still be the finding, and whether there is time to play it. It shows the progress.
func (e *explorer) worthPlaying(t *testing.T, i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if deadline, set := t.Deadline(); set && time.Until(deadline) < timeToReport {
		e.unplayed++
		return false
	}
	if time.Since(e.lastProgress) > progressEvery {
		e.lastProgress = time.Now()
		t.Logf("%d schedules played so far", e.played)
	}
	return e.finding == nil || i < e.findingIndex // One finding at a time.
}

func (e *explorer) playOne(t *testing.T, i int, schedule simulation.Schedule) {
	t.Helper()
	found := play(t, e.scenario, e.setup(schedule))
	broken := e.judge(found, schedule)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.use(found)
	e.played++
	if len(found.missed(schedule)) > 0 {
		e.missedSchedules = append(e.missedSchedules, schedule.String())
	}
	e.withoutTarget = append(e.withoutTarget, found.withoutTarget...)
	if len(schedule) == 1 {
		e.noteRecoveries(found, schedule)
	}
	if len(broken) > 0 && (e.finding == nil || i < e.findingIndex) {
		e.finding, e.findingIndex = &Finding{Schedule: schedule.String(), Broken: broken}, i
	}
}

// judge returns what does not hold in a run.
func (e *explorer) judge(found result, schedule simulation.Schedule) []string {
	switch {
	case e.clean.upgrades && schedule.Count(simulation.Kind.Replaces) > 0 && len(found.missed(schedule)) > 0:
		return append(slices.Clone(found.simulatorFailures), found.missingRights()...) // The previous version has run to the end.
	case schedule.Count(simulation.Kind.ByUser) > 0:
		// What is left depends on what the user did, so neither the end nor the expectations of the scenario can be checked.
		return slices.Concat(found.simulatorFailures, found.missingRights(), repeatedEffects(e.clean, found, schedule))
	}
	return judge(e.clean, found, schedule)
}

// playPrevious plays the scenario with the previous version alone, if there is one: the faults of Updates happen at its points.
func (e *explorer) playPrevious(t *testing.T) *Finding {
	t.Helper()
	if !e.clean.upgrades || !e.settings.wants(Updates) {
		return nil
	}
	found := play(t, e.scenario, e.setup(neverUpdated()))
	e.clean.previousPoints = found.points
	if len(found.simulatorFailures) > 0 {
		return &Finding{Schedule: neverUpdated().String(), Broken: found.simulatorFailures}
	}
	return nil
}

// neverUpdated runs the previous version from the beginning to the end.
func neverUpdated() simulation.Schedule {
	return simulation.Schedule{{Kind: simulation.RollingUpdate, At: simulation.Point{What: "no point", N: 1}}}
}

// noteRecoveries notes which second faults there can be at points that only exist after the first.
func (e *explorer) noteRecoveries(found result, schedule simulation.Schedule) {
	if schedule.Count(simulation.Kind.ByUser) > 0 || schedule.Has(simulation.TwoReplicas) {
		return
	}
	known := map[simulation.Point]bool{}
	for _, at := range e.clean.points {
		known[at] = true
	}
	for _, at := range found.points {
		if known[at] {
			continue
		}
		known[at] = true
		for _, kind := range []simulation.Kind{simulation.CrashAfter, simulation.Refused} {
			name := string(kind) + " " + at.String()
			e.secondFaults[name] = append(e.secondFaults[name], slices.Concat(schedule, simulation.Schedule{{Kind: kind, At: at}}))
		}
	}
}

// likeness puts a second fault first that is of the same kind as the one before it: two crashes, and two attempts that fail.
func likeness(s simulation.Schedule) int {
	if s[0].Kind == s[len(s)-1].Kind {
		return 1
	}
	return 0
}

// disturbedRecoveries chooses second faults for the points that exist only after a first one, up to a budget.
func (e *explorer) disturbedRecoveries(budget int) []simulation.Schedule {
	kinds := make([][]simulation.Schedule, 0, len(e.secondFaults))
	for _, name := range slices.Sorted(maps.Keys(e.secondFaults)) {
		all := e.secondFaults[name]
		slices.SortFunc(all, func(a, b simulation.Schedule) int {
			return cmp.Or(likeness(b)-likeness(a), strings.Compare(a.String(), b.String()))
		})
		kinds = append(kinds, all)
	}
	if e.settings.budget == whole {
		return slices.Concat(kinds...)
	}
	if len(kinds) > budget {
		kinds = slices.DeleteFunc(kinds, func() func([]simulation.Schedule) bool {
			i, total := -1, len(kinds)
			return func([]simulation.Schedule) bool { i++; return i*budget/total == (i+1)*budget/total }
		}())
	}
	return e.settings.spreadOver(kinds, budget)
}
