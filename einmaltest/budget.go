package einmaltest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// AllVariable is the environment variable that lifts the budget of Explore. With the value 1, Explore plays every fault of every dimension at every
// point, and every recovery. This takes about 25 times as long. With K/N, such as 2/5, Explore plays the Kth of N equal shares of that, so that N
// runs together play all. Any other value fails the test.
const AllVariable = "EINMALTEST_ALL"

// Environment variables that Explore documents.
const (
	quickVariable = "EINMALTEST_QUICK"
	seedVariable  = "EINMALTEST_SEED"
)

// budget is how much Explore plays.
type budget int

const (
	usual budget = iota
	quick
	whole
)

// Sample sizes. In the usual budget they are at least so many, and at most this part of the schedules that are always played.
const (
	leastSampled    = 60
	leastRecoveries = 20
	partSampled     = 4 // a quarter
	partRecoveries  = 10
	quickSampled    = 12
	quickRecoveries = 4
)

// fromEnvironment sets the budget and the seed from environment variables.
func fromEnvironment(s settings) settings {
	all, few := os.Getenv(AllVariable), os.Getenv(quickVariable) != ""
	switch {
	case all != "" && few:
		s.mistakes = append(s.mistakes, fmt.Sprintf("the environment variables %s and %s are both set: unset one", AllVariable, quickVariable))
	case all != "":
		var ok bool
		if s.share, ok = shareOf(all); !ok {
			s.mistakes = append(s.mistakes, fmt.Sprintf("the environment variable %s must be 1, or K/N with 1 <= K <= N, got %q", AllVariable, all))
		}
		s.budget = whole
	case few:
		s.budget = quick
	}
	text := os.Getenv(seedVariable)
	if text == "" {
		return s
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		s.mistakes = append(s.mistakes, fmt.Sprintf("the environment variable %s must be a decimal number, got %q", seedVariable, text))
	}
	s.seed = seed
	return s
}

// share is a part of all schedules: the one with a number, of so many of the same size.
type share struct{ number, of int }

// shareOf reads "1" for all schedules, or "2/5" for the second of five shares.
func shareOf(text string) (s share, ok bool) {
	number, of, divided := strings.Cut(text, "/")
	if !divided {
		return share{1, 1}, text == "1"
	}
	var err, wrong error
	s.number, err = strconv.Atoi(number)
	s.of, wrong = strconv.Atoi(of)
	return s, err == nil && wrong == nil && s.number >= 1 && s.number <= s.of
}

// take returns every schedule whose place belongs to the share.
func (s share) take(all []simulation.Schedule) []simulation.Schedule {
	var taken []simulation.Schedule
	for i, one := range all {
		if i%s.of == s.number-1 {
			taken = append(taken, one)
		}
	}
	return taken
}

// plan is what Explore plays first. Faults during recovery and pairs of faults follow.
type plan struct {
	// always are the schedules that the budget does not limit.
	always []simulation.Schedule
	// sampled are chosen from the other schedules, whose number is others.
	sampled []simulation.Schedule
	others  int
}

// plan chooses schedules, given a run without faults.
func (s settings) plan(clean result) plan {
	always, others := s.singles(clean), s.sampled(clean)
	budget := max(leastSampled, len(always)/partSampled)
	if s.budget == quick {
		rest := slices.DeleteFunc(slices.Clone(always), crashesAtWrite)
		always = slices.DeleteFunc(always, func(one simulation.Schedule) bool { return !crashesAtWrite(one) })
		others = [][]simulation.Schedule{slices.Concat(rest, slices.Concat(others...))}
		budget = quickSampled
	}
	if s.budget == whole {
		return plan{always: s.share.take(always), sampled: s.share.take(slices.Concat(others...)), others: total(others)}
	}
	return plan{always: always, sampled: s.sample(others, budget), others: total(others)}
}

// crashesAtWrite reports whether a schedule is a single crash just before or just after a write or an effect.
func crashesAtWrite(one simulation.Schedule) bool {
	if len(one) != 1 || one[0].Kind != simulation.CrashBefore && one[0].Kind != simulation.CrashAfter {
		return false
	}
	verb, _, _ := strings.Cut(one[0].At.What, " ")
	return verb != "get" && verb != "list"
}

// recoveries is how many faults during recovery are played after so many schedules that are always played.
func (s settings) recoveries(always int) int {
	if s.budget == quick {
		return quickRecoveries
	}
	return max(leastRecoveries, always/partRecoveries)
}

// sample chooses schedules of each kind, up to a budget: the first and the last of each kind even if the budget is smaller, and as many others of
// each kind as the budget allows, evenly spread over the points. The seed says at which point each kind begins, and which kinds get one more.
func (s settings) sample(kinds [][]simulation.Schedule, budget int) []simulation.Schedule {
	if s.budget == whole {
		return slices.Concat(kinds...)
	}
	var chosen []simulation.Schedule
	inner := make([][]simulation.Schedule, len(kinds))
	for i, all := range kinds {
		if len(all) > 0 {
			chosen = append(chosen, all[0])
		}
		if len(all) > 1 {
			chosen = append(chosen, all[len(all)-1])
			inner[i] = all[1 : len(all)-1]
		}
	}
	return append(chosen, s.spreadOver(inner, budget-len(chosen))...)
}

// spreadOver chooses about the same number of schedules of each kind, up to a budget, evenly spread over the points.
func (s settings) spreadOver(kinds [][]simulation.Schedule, budget int) []simulation.Schedule {
	var chosen []simulation.Schedule
	random := s.random()
	for i, n := range fairShares(kinds, budget, random) {
		chosen = append(chosen, spread(kinds[i], n, random)...)
	}
	return chosen
}

// spread chooses n schedules, evenly spread.
func spread(all []simulation.Schedule, n int, random *rand.Rand) []simulation.Schedule {
	if n == 0 {
		return nil
	}
	var chosen []simulation.Schedule
	begin := random.IntN(len(all))
	for i := range n {
		chosen = append(chosen, all[(i*len(all)+begin)/n])
	}
	return chosen
}

func (s settings) random() *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, s.seed)) //nolint:gosec // The same choice each time, not secrets.
}

// fairShares divides a budget: one schedule after the other for each kind that has more, the kinds in a random order.
func fairShares(kinds [][]simulation.Schedule, budget int, random *rand.Rand) []int {
	shares := make([]int, len(kinds))
	order := random.Perm(len(kinds))
	for given := true; given; {
		given = false
		for _, i := range order {
			if budget > 0 && shares[i] < len(kinds[i]) {
				shares[i]++
				budget--
				given = true
			}
		}
	}
	return shares
}

// total counts schedules.
func total(kinds [][]simulation.Schedule) int {
	n := 0
	for _, all := range kinds {
		n += len(all)
	}
	return n
}
