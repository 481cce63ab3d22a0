package einmaltest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/report"
	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// What one fault may cost: so many more writes of each name, and where bookkeeping was wiped while the operator was down, a creation that
// starts again from its beginning. An attempt that was cut short costs its own outcome, and the next one up to two: one can be an intent. Of two
// replicas without leader election, each may answer what the other has written.
const (
	writesOfAFault = 3
	writesOfAWipe  = 4
	// writesByChance is what may be one write or two in any run: the end of a daemon, and of the handlers beside it.
	writesByChance = 1
	// slowWrites is how many writes there may be for one: where handlers take time, what one write could hold takes several.
	slowWrites = 2
)

// judge compares a run with the one without faults, and returns what does not hold.
func judge(clean, found result, schedule simulation.Schedule) []string {
	broken := append(slices.Clone(found.failures), found.missingRights()...)
	replicas, wiped := replicasOf(schedule), wipes(schedule)
	repeats := schedule.Count(func(kind simulation.Kind) bool {
		// A process that stops while a write hangs cannot save what it has done.
		return kind.Repeats() || kind.Hangs() && clean.processes > 1
	})
	if schedule.GoesBack() || deletedBeforeRead(clean, found, schedule) {
		return slices.Concat(found.simulatorFailures, found.missingRights(), repeatedEffects(clean, found, schedule))
	}
	broken = append(broken, compareEnds(clean, found, schedule)...)
	for name, n := range counted(found.successes) {
		if most := clean.successes[name]*replicas + repeats + wiped; n > most {
			broken = append(broken, fmt.Sprintf("%s: the handler succeeded %d times, want at most %d: what is done is not to be done again", name, n, most))
		}
	}
	for name, n := range counted(found.retries) {
		if most := clean.retries[name]*(replicas+wiped) + repeats; n > most && !schedule.Disturbs() {
			broken = append(broken, fmt.Sprintf("%s: the handler failed %d times, want at most %d: attempts that are recorded count, also after a crash", name, n, most))
		}
	}
	for name, n := range counted(found.writes) {
		if most := allowedWrites(clean, schedule, name); n > most {
			broken = append(broken, fmt.Sprintf("%s: written %d times, want at most %d", name, n, most))
		}
	}
	return broken
}

// allowedWrites is how often something may be written in a run with faults. It depends on the faults alone, and not on what the operator does then.
func allowedWrites(clean result, schedule simulation.Schedule, name string) int {
	replicas := replicasOf(schedule)
	most := clean.writes[name]*replicas*replicas + writesByChance
	if schedule.Has(simulation.SlowCalls) {
		most += clean.writes[name] * replicas * replicas * (slowWrites - 1)
	}
	if schedule.Has(simulation.DeniedByWebhook) {
		most += clean.handlersOf(name)
	}
	return most + writesOfAFault*faults(schedule) + writesOfAWipe*wipes(schedule)
}

// handlersOf counts the handlers of the object that a write changes. A write that a webhook denies holds the results of several handlers: each of them
// is tried again at a time of its own, and each new result is a write.
func (r result) handlersOf(write string) int {
	words := strings.Fields(write)
	n := 0
	for name := range r.completed {
		if of := strings.Fields(name); len(words) > 2 && of[len(of)-1] == words[2] {
			n++
		}
	}
	return n
}

// replicasOf counts the processes that a schedule has run beside or after one another where a run without faults has one.
func replicasOf(schedule simulation.Schedule) int {
	return 1 + schedule.Count(func(kind simulation.Kind) bool { return kind == simulation.TwoReplicas || kind.Replaces() })
}

// wipes counts the losses of bookkeeping that a process can begin with: those while no process ran, and those whose process ended before it could
// write its record again.
func wipes(schedule simulation.Schedule) int {
	if ends(schedule) > 0 {
		return schedule.Count(simulation.Kind.Wipe)
	}
	return 0
}

// ends counts the faults that end a process.
func ends(schedule simulation.Schedule) int {
	return schedule.Count(func(kind simulation.Kind) bool { return kind.Crash() || kind.Replaces() })
}

// faults counts the faults of a schedule; some are several.
func faults(schedule simulation.Schedule) int {
	n := len(schedule)
	for _, fault := range schedule {
		switch fault.Kind { //nolint:exhaustive // The others happen once.
		case simulation.RefusedThrice, simulation.RollBack, simulation.Overloaded:
			n += 2
		}
	}
	return n
}

// compareEnds compares what two runs have left, and how often each effect happened.
func compareEnds(clean, found result, schedule simulation.Schedule) []string {
	left, expected := found.objects, clean.objects
	if schedule.Count(simulation.Kind.Wipe) > 0 {
		left, expected = found.objectsAfterLoss, clean.objectsAfterLoss
	}
	broken := differences("what is left", withoutGenerations(expected, found.takenAway), withoutGenerations(left, found.takenAway))
	broken = append(broken, differences("the outcome", clean.outcomes, found.outcomes)...)
	for _, name := range slices.Sorted(maps.Keys(clean.stableSecrets)) {
		if value, there := found.secretDigests[name]; there && value != clean.stableSecrets[name] {
			broken = append(broken, name+": it holds another value than without faults")
		}
	}
	broken = append(broken, compareEffects(clean, found, schedule)...)
	return append(broken, compareTimes(clean.times, found.times)...)
}

// withoutGenerations leaves out the generations of some objects, which begin again when an object is deleted and created again.
func withoutGenerations(objects map[string]string, of map[string]bool) map[string]string {
	if len(of) == 0 {
		return objects
	}
	lines := regexp.MustCompile(`(?m)^(  generation| +observedGeneration): \d+\n`)
	kept := maps.Clone(objects)
	for name := range of {
		if text, there := kept[name]; there {
			kept[name] = lines.ReplaceAllString(text, "")
		}
	}
	return kept
}

// deletedBeforeRead reports whether a child was deleted before a handler read it, and is not there in the end. A handler may leave it at that, so that
// only effects are compared.
func deletedBeforeRead(clean, found result, schedule simulation.Schedule) bool {
	deleted := slices.ContainsFunc(schedule, func(fault simulation.Fault) bool {
		return fault.Kind == simulation.ChildDeleted && strings.HasPrefix(fault.At.What, "get ")
	})
	if !deleted {
		return false
	}
	for name := range clean.objects {
		if _, left := found.objects[name]; !left {
			return true
		}
	}
	return false
}

// compareEffects compares how often each effect happened, and how many values each idempotent effect and each Secret had.
func compareEffects(clean, found result, schedule simulation.Schedule) []string {
	return append(repeatedEffects(clean, found, schedule), lostEffects(clean, found, schedule)...)
}

// repeatedEffects returns the effects that happened more often than without faults, and the values that changed more often.
func repeatedEffects(clean, found result, schedule simulation.Schedule) []string {
	var broken []string
	for name, n := range counted(found.effects) {
		if most := clean.effects[name]; n > most {
			broken = append(broken, fmt.Sprintf("%s: it happened %s, and %s without faults: "+
				"make it once, or declare with Process.IdempotentEffect that a repetition does no harm", name, times(n), times(most)))
		}
	}
	for name, n := range counted(found.valueChanges) {
		if most := clean.valueChanges[name]; n > most && !schedule.Has(simulation.UserDeletes) { // What was under way may be taken back.
			broken = append(broken, fmt.Sprintf("%s: it has had %d values one after the other, and %d when nothing goes wrong: what was generated or set is not to be replaced", name, n, most))
		}
	}
	return broken
}

// lostEffects returns the effects that happened less often than without faults, although their handlers were done as often.
func lostEffects(clean, found result, schedule simulation.Schedule) []string {
	if losesHandling(schedule) {
		return nil
	}
	var broken []string
	for name, n := range counted(clean.effects) {
		if got := found.effects[name]; isLost(clean, found, name, got, n) {
			broken = append(broken, fmt.Sprintf("%s: it happened %s, and %s without faults: a handler must not record that it is done before it is done%s",
				name, times(got), times(n), waiting(clean, found, name)))
		}
	}
	for name, n := range counted(clean.valueChanges) {
		got := found.valueChanges[name]
		if !isEffect(name) || !isLost(clean, found, name, got, n) {
			continue
		}
		says := fmt.Sprintf("number of values one after the other: %d, and %d without faults", got, n)
		if got == 0 {
			says = "it happened never, and it did without faults"
		}
		broken = append(broken, fmt.Sprintf("%s: %s: a handler must not record that it is done before it is done%s", name, says, waiting(clean, found, name)))
	}
	return broken
}

// isLost reports whether an effect happened less often than without faults, and no reason excuses that. It may happen less often if a handler that
// causes it was done less often, and waits for no person. How often timers, daemons and handlers of Reconcile are called depends on time.
func isLost(clean, found result, effect string, got, want int) bool {
	callers := clean.callers[effect]
	switch {
	case got >= want:
		return false
	case fewerDone(clean, found, callers) && waiting(clean, found, effect) == "":
		return false
	default:
		return got == 0 || !slices.ContainsFunc(callers, func(call Call) bool { return !call.counts() })
	}
}

// reportOfLoss returns the type of the condition by which an operator reports that a record was lost while no process ran.
func reportOfLoss(schedule simulation.Schedule) []string {
	if wipes(schedule) == 0 {
		return nil
	}
	return []string{report.LostCondition}
}

// losesHandling reports whether an operator need not do all that it does without faults, because a record was lost while no process ran. Then create and update handlers are not called, because a second creation does harm.
func losesHandling(schedule simulation.Schedule) bool {
	return wipes(schedule) > 0
}

// fewerDone reports whether one of the handlers that may have caused an effect was done less often than without faults. It need not be done as often if
// several changes of an object are handled as one, or if the object was created and deleted while no process ran. If it must be, what is left
// differs.
func fewerDone(clean, found result, callers []Call) bool {
	return slices.ContainsFunc(callers, func(call Call) bool { return found.completed[call.handling()] < clean.completed[call.handling()] })
}

// waiting names the handlers that may have caused an effect, and wait for a person in a run with faults alone, such as those with an effect of
// einmal.RecoverByHand.
func waiting(clean, found result, effect string) string {
	var names []string
	for _, call := range clean.callers[effect] {
		if name := call.handling(); found.failedForGood[name] && !clean.failedForGood[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "; handlers that have failed for good and wait for a person: " + strings.Join(slices.Compact(names), ", ")
}

// isEffect reports whether a name is that of an effect, and not that of a key of a Secret or of a field.
func isEffect(name string) bool { return strings.HasPrefix(name, "effect ") }

// compareTimes returns the times that are further from those of the run without faults than their rules allow.
func compareTimes(clean, found map[string]limitedTime) []string {
	var broken []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		expected, is := clean[name]
		if off := found[name].at.Sub(expected.at).Abs(); is && off > expected.within {
			broken = append(broken, fmt.Sprintf("%s: it is %s, and %s without faults: want at most %s between them",
				name, found[name].at.Format(time.RFC3339), expected.at.Format(time.RFC3339), expected.within))
		}
	}
	return broken
}

// times says a number of times.
func times(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	default:
		return fmt.Sprintf("%d times", n)
	}
}

// counted goes through counts in the order of their names.
func counted(counts map[string]int) func(func(string, int) bool) {
	return func(yield func(string, int) bool) {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			if !yield(name, counts[name]) {
				return
			}
		}
	}
}

// differences returns what differs between two runs, or exists in one of them only.
func differences(what string, clean, found map[string]string) []string {
	names := map[string]bool{}
	for _, all := range []map[string]string{clean, found} {
		for name := range all {
			names[name] = true
		}
	}
	var broken []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		want, wanted := clean[name]
		got, there := found[name]
		switch {
		case !there:
			broken = append(broken, fmt.Sprintf("%s: it is missing; %s when nothing goes wrong:\n%s", name, what, want))
		case !wanted:
			broken = append(broken, fmt.Sprintf("%s: it is not there when nothing goes wrong; %s now:\n%s", name, what, got))
		case want != got:
			diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n"))
			broken = append(broken, fmt.Sprintf("%s: %s differs (- when nothing goes wrong, + now):\n%s", name, what, diff))
		}
	}
	return broken
}
