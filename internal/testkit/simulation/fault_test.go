package simulation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/testkit/simulation"
)

// A schedule is named so that the report of a failure can be played again.
func TestASchedulesNameIsReadBack(t *testing.T) {
	for _, schedule := range []simulation.Schedule{
		{{Kind: simulation.StaleCache}},
		{{Kind: simulation.CrashAfter, At: simulation.Point{What: "patch widgets.example.com default/one status by resize", N: 2}}},
		{{Kind: simulation.TwoReplicas}, {Kind: simulation.AnswerLost, At: simulation.Point{What: "effect set: password #1 of acme", N: 1}}},
		{{Kind: simulation.EventLost, At: simulation.Point{What: "pods", N: 12}}},
	} {
		read, err := simulation.ParseSchedule(schedule.String())
		if diff := cmp.Diff(schedule, read); err != nil || diff != "" {
			t.Errorf("%s is read back with %v as another: %s", schedule, err, diff)
		}
	}
}

func TestWhatNamesNoScheduleIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "meteor strikes", "crash before", "crash before: ", "crash before: get pods a/b", "crash before: get pods a/b #0",
		"two replicas: get pods a/b #1", "two replicas; meteor strikes",
	} {
		if read, err := simulation.ParseSchedule(text); err == nil {
			t.Errorf("%q is read as %s", text, read)
		}
	}
}
