package einmaltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// What one thing that goes wrong may cost: so many more writes of each name, and where bookkeeping was wiped while the
// operator was down, a creation that is done again from its beginning. An attempt that was cut short costs its own outcome,
// and the next one up to two: with SaveFirst it is announced, too. Of two replicas that are not elected, each may answer what
// the other has written.
const (
	writesOfAFault = 3
	writesOfAWipe  = 4
	// writesByChance is what may be one write or two in any run: the end of a daemon, and of the handlers beside it.
	writesByChance = 1
)

// judge compares a run with the one in which nothing went wrong, and returns what does not hold.
func judge(clean, found result, schedule simulation.Schedule) []string {
	broken := slices.Clone(found.failures)
	replicas := 1 + schedule.Count(func(kind simulation.Kind) bool { return kind == simulation.TwoReplicas })
	repeats := schedule.Count(func(kind simulation.Kind) bool { return kind.Crash() })
	wiped := schedule.Count(func(kind simulation.Kind) bool { return kind == simulation.CrashThenWiped })
	left, expected := found.objects, clean.objects
	if schedule.Count(simulation.Kind.Wipe) > 0 {
		left, expected = found.unmarked, clean.unmarked
	}
	broken = append(broken, differences("what is left", expected, left)...)
	broken = append(broken, differences("the outcome", clean.outcomes, found.outcomes)...)
	for name, n := range counted(found.values) {
		if most := clean.values[name]; n > most {
			broken = append(broken, fmt.Sprintf("%s: it has had %d values one after the other, and %d when nothing goes wrong: what was generated or set is not to be replaced", name, n, most))
		}
	}
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
		if most := clean.writes[name]*replicas*replicas + writesOfAFault*len(schedule) + writesOfAWipe*wiped + writesByChance; n > most {
			broken = append(broken, fmt.Sprintf("%s: written %d times, want at most %d", name, n, most))
		}
	}
	return broken
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

// differences tells what is there in one run and another, or not at all, in the other.
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
