package einmaltest

import (
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// A record that is lost while a process runs is written again from memory. If the process ends before that, attempts begin to count again.
func TestALossOfBookkeepingCountsIfAProcessBeginsWithIt(t *testing.T) {
	for schedule, want := range map[string]int{
		"bookkeeping wiped before: patch widgets default/one #1":                                                         0,
		"crash before: patch widgets default/one #1":                                                                     0,
		"crash before, bookkeeping wiped while down: patch widgets default/one #1":                                       1,
		"bookkeeping wiped before: patch widgets default/one #1; crash before: patch widgets default/one #2":             1,
		"bookkeeping wiped before: patch widgets default/one #1; rolling update before: patch widgets default/one #2":    1,
		"record replaced by other text before: patch widgets default/one #1; crash before: patch widgets default/one #2": 1,
	} {
		parsed, err := simulation.ParseSchedule(schedule)
		if err != nil {
			t.Fatal(err)
		}
		if got := wipes(parsed); got != want {
			t.Errorf("%s: %d losses, want %d", schedule, got, want)
		}
	}
}
