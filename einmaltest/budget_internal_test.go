package einmaltest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// wrote is a run without faults: a handler reads an object, writes it and calls an external system.
func wrote() result {
	return result{points: []simulation.Point{
		{What: "get configmaps default/one", N: 1},
		{What: "patch configmaps default/one by make", N: 1},
		{What: "effect send the mail", N: 1},
	}}
}

func planWith(t *testing.T, variables map[string]string) plan {
	t.Helper()
	for name, value := range variables {
		t.Setenv(name, value)
	}
	s := newSettings(nil)
	if len(s.mistakes) > 0 {
		t.Fatal(s.mistakes)
	}
	return s.plan(wrote())
}

func TestAQuickExplorationCrashesAtEachWriteAndEffect(t *testing.T) {
	found := planWith(t, map[string]string{quickVariable: "1"})
	var names []string
	for _, one := range found.always {
		names = append(names, one.String())
	}
	want := []string{
		"crash before: patch configmaps default/one by make #1", "crash before: effect send the mail #1",
		"crash after, its answer lost: patch configmaps default/one by make #1", "crash after, its answer lost: effect send the mail #1",
	}
	if !slices.Equal(names, want) {
		t.Errorf("it always plays\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
	if len(found.sampled) != quickSampled || found.others <= quickSampled {
		t.Errorf("it plays %d of %d other schedules, want %d", len(found.sampled), found.others, quickSampled)
	}
}

// kindsOfSizes has two schedules of the first kind, and ten more of each further one.
func kindsOfSizes() [][]simulation.Schedule {
	var kinds [][]simulation.Schedule
	for kind := range 5 {
		var all []simulation.Schedule
		for n := range 2 + 10*kind {
			all = append(all, simulation.Schedule{{Kind: simulation.Kind(fmt.Sprint("kind ", kind)), At: simulation.Point{What: "get pods default/one", N: n + 1}}})
		}
		kinds = append(kinds, all)
	}
	return kinds
}

// The first point is where nothing is recorded yet, and the last one is where everything is. A sample never leaves these out.
func TestASampleHasTheFirstAndTheLastPointOfEachKind(t *testing.T) {
	kinds := kindsOfSizes()
	var ends []string
	for _, all := range kinds {
		ends = append(ends, all[0].String(), all[len(all)-1].String())
	}
	for seed := range uint64(20) {
		for _, budget := range []int{1, 10, 11, 50} {
			chosen := map[string]bool{}
			for _, one := range (settings{seed: seed}).sample(kinds, budget) {
				chosen[one.String()] = true
			}
			missing := slices.DeleteFunc(slices.Clone(ends), func(name string) bool { return chosen[name] })
			if want := max(budget, len(ends)); len(missing) > 0 || len(chosen) != want {
				t.Errorf("seed %d, budget %d: %q are missing; %d different schedules, want %d", seed, budget, missing, len(chosen), want)
			}
		}
	}
}

func TestNothingIsSampledWithoutABudget(t *testing.T) {
	if found := planWith(t, map[string]string{AllVariable: "1"}); len(found.sampled) != found.others {
		t.Errorf("it plays %d of %d schedules", len(found.sampled), found.others)
	}
}

func TestSharesAreAllSchedulesTogether(t *testing.T) {
	played := func(value string) []string {
		var names []string
		found := planWith(t, map[string]string{AllVariable: value})
		for _, one := range slices.Concat(found.always, found.sampled) {
			names = append(names, one.String())
		}
		return names
	}
	all, shares := played("1"), slices.Concat(played("1/3"), played("2/3"), played("3/3"))
	slices.Sort(all)
	slices.Sort(shares)
	if len(all) == 0 || !slices.Equal(all, shares) {
		t.Errorf("all are\n%q\nand three shares\n%q", all, shares)
	}
}

func TestTheSeedChoosesTheSample(t *testing.T) {
	sampledWith := func(seed string) string {
		return fmt.Sprint(planWith(t, map[string]string{quickVariable: "1", seedVariable: seed}).sampled)
	}
	if one, same, other := sampledWith("1"), sampledWith("1"), sampledWith("2"); one != same || one == other {
		t.Errorf("seed 1 chooses\n%s\nand\n%s\nand seed 2\n%s", one, same, other)
	}
}

func TestMistakesInVariablesOfExploreNameTheRemedy(t *testing.T) {
	for name, test := range map[string]struct {
		variables map[string]string
		want      string
	}{
		"both budgets":            {map[string]string{quickVariable: "1", AllVariable: "1"}, "EINMALTEST_ALL and EINMALTEST_QUICK are both set: unset one"},
		"no share of this number": {map[string]string{AllVariable: "6/5"}, `EINMALTEST_ALL must be 1, or K/N with 1 <= K <= N, got "6/5"`},
		"no share":                {map[string]string{AllVariable: "yes"}, `EINMALTEST_ALL must be 1, or K/N with 1 <= K <= N, got "yes"`},
		"seed is no number":       {map[string]string{seedVariable: "many"}, `EINMALTEST_SEED must be a decimal number, got "many"`},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range test.variables {
				t.Setenv(variable, value)
			}
			if got := fmt.Sprint(newSettings(nil).mistakes); !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %q", got, test.want)
			}
		})
	}
}
