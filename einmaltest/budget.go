package einmaltest

import (
	"os"

	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// AllVariable is the environment variable that lifts the budget of Explore: with any value it plays every fault of every dimension at
// every point, and every recovery. That takes some five times as long.
const AllVariable = "EINMALTEST_ALL"

// What Explore plays beside the faults that it tries everywhere: at least so many, and at most this part of them.
const (
	leastSampled    = 60
	leastRecoveries = 20
	partSampled     = 4 // a quarter
	partRecoveries  = 10
)

// sample chooses schedules of each kind, as many of one as of another, spread evenly over their points, up to a budget.
func sample(kinds [][]simulation.Schedule, budget int) []simulation.Schedule {
	if unlimited() {
		budget = len(kinds) * longest(kinds)
	}
	share := fairShare(kinds, budget)
	var chosen []simulation.Schedule
	for _, all := range kinds {
		n := min(share, len(all))
		for i := range n {
			chosen = append(chosen, all[i*len(all)/n])
		}
	}
	return chosen
}

func unlimited() bool { return os.Getenv(AllVariable) != "" }

// fairShare is how many of each kind fit into the budget.
func fairShare(kinds [][]simulation.Schedule, budget int) int {
	for share := longest(kinds); share > 1; share-- {
		total := 0
		for _, all := range kinds {
			total += min(share, len(all))
		}
		if total <= budget {
			return share
		}
	}
	return 1
}

func longest(kinds [][]simulation.Schedule) int {
	most := 0
	for _, all := range kinds {
		most = max(most, len(all))
	}
	return most
}
