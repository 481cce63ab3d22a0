package einmaltest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/einmal-operators/einmal"
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

// callOf is a call of a handler for an object.
func callOf(handler, object string, reason einmal.Reason) Call {
	return Call{Handler: handler, Kind: "Tenant", Namespace: "default", Name: object, Reason: reason}
}

// An effect that happens too seldom is lost, unless a handler that causes it was done less often.
func TestAnEffectThatHappensTooSeldomIsFound(t *testing.T) {
	const mail, limit = "effect mail the team", "effect set the limit"
	create, look := callOf("make", "one", einmal.ReasonCreate), callOf("look", "one", einmal.ReasonReconcile)
	daemon := Call{}
	clean := result{
		effects: map[string]int{mail: 3}, valueChanges: map[string]int{limit: 2},
		completed: map[string]int{create.handling(): 3, callOf("make", "other", einmal.ReasonCreate).handling(): 1},
	}
	for _, test := range []struct {
		name           string
		caller         Call
		mails, limits  int
		made, ofOther  int
		failed         bool
		found, notices string
	}{
		{"never", create, 0, 2, 3, 1, false, mail + ": it happened never, and 3 times without faults", ""},
		{"never, and a handler of another object was done less often", create, 0, 2, 3, 0, false, mail + ": it happened never", ""},
		{"too seldom", create, 2, 2, 3, 1, false, mail + ": it happened 2 times, and 3 times without faults", ""},
		{"a value less", create, 3, 1, 3, 1, false, limit + ": number of values one after the other: 1, and 2 without faults", ""},
		{"no value", create, 3, 0, 3, 1, false, limit + ": it happened never, and it did without faults", ""},
		{"its handler was done less often", create, 2, 1, 2, 1, false, "", ""},
		{"its handler waits for a person", create, 2, 2, 2, 1, true, mail + ": it happened 2 times", "handlers that have failed for good and wait for a person: make of Tenant default/one"},
		{"a handler that is called from time to time", look, 2, 1, 3, 1, false, "", ""},
		{"a daemon", daemon, 2, 1, 3, 1, false, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			clean.callers = map[string][]Call{mail: {test.caller}, limit: {test.caller}}
			found := result{
				effects: map[string]int{mail: test.mails}, valueChanges: map[string]int{limit: test.limits},
				completed:     map[string]int{create.handling(): test.made, callOf("make", "other", einmal.ReasonCreate).handling(): test.ofOther},
				failedForGood: map[string]bool{create.handling(): test.failed},
			}
			got := fmt.Sprint(lostEffects(clean, found, nil))
			if test.found == "" && got != "[]" || !strings.Contains(got, test.found) || !strings.Contains(got, test.notices) {
				t.Errorf("got %s, want %q and %q", got, test.found, test.notices)
			}
		})
	}
}

// A write that was denied is tried again by each handler of its object. What the operator does beyond that does not raise its limit.
func TestTheNumberOfAllowedWritesDoesNotDependOnTheOperator(t *testing.T) {
	const write = "patch tenants.example.com default/one status"
	clean := result{writes: map[string]int{write: 2}, completed: map[string]int{
		"make of Tenant default/one": 1, "look of Tenant default/one": 1, "make of Tenant default/other": 1,
	}}
	denied := simulation.Schedule{{Kind: simulation.DeniedByWebhook, At: simulation.Point{What: write, N: 1}}}
	const want = 2 + writesByChance + 2 + writesOfAFault
	if got := allowedWrites(clean, denied, write); got != want {
		t.Errorf("%d writes are allowed, want %d", got, want)
	}
	stormy := result{writes: map[string]int{write: want + 1}, retries: map[string]int{"make of Tenant default/one": 20}}
	if got := fmt.Sprint(judge(clean, stormy, denied)); !strings.Contains(got, fmt.Sprintf("%s: written %d times, want at most %d", write, want+1, want)) {
		t.Errorf("got %s", got)
	}
}
