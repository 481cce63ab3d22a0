package mutants_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mutant is one bug: the line of the library that carries the comment "// mutant: NAME", the Go text that a careless
// change would make of it, the test that catches the bug, and words of the failure.
//
// In changed, LINE stands for the original line and MUTATED for a condition that is true when this mutant is switched on.
// Functions that changed needs are in testdata.
type mutant struct {
	name, changed string
	// in is the folder of the package whose test catches the bug; test is its name.
	in, test string
	// says is part of what the test prints when it fails.
	says string
}

// mutants returns every mutant. Each part of the library has a table of its own.
func mutants() []mutant {
	return slices.Concat(promiseMutants(), watermarkMutants(), recordMutants(), effectMutants(), edgeMutants(), labelMutants(), ownerMutants())
}

// promiseMutants returns the bugs that the README promises not to have.
func promiseMutants() []mutant {
	const explored = "TestWhateverGoesWrongTheEndIsTheSame/record_in_the_status"
	const askingEffects = "TestWhateverGoesWrongAnEffectIsMadeOnce/stop,_record_in_the_status"
	return []mutant{
		{
			name: "finalizer-after-effect",
			changed: `if late := MUTATED; late && l.s.plan.Finalizer == handler.Add {
				l.s.plan = l.s.view.Pure.Decide(l.s.asMarked())
				defer l.markLate(ctx)
			} else LINE`,
			in: "test/virtual", test: "TestTheFinalizerIsAddedBeforeAHandlerRuns", says: "finalizers while the handler runs",
		},
		{
			name:    "record-before-handler",
			changed: `if MUTATED { a.saveEarly(ctx, w, run) }; LINE`,
			in:      "test/explore", test: explored, says: "it still fails, without any fault",
		},
		{
			name:    "attempts-lost",
			changed: `if d.s.memory.ours == "" && found.Record != nil && MUTATED { found.Record = uncounted(found.Record) }; LINE`,
			in:      "test/explore", test: explored, says: "attempts that are recorded count",
		},
		{
			name:    "stale-read-trusted",
			changed: `return shown == f.outdated || !MUTATED && kube.Older(shown, f.newest)`,
			in:      "test/virtual", test: "TestAnOldEventAfterAWriteOfTheStatusRunsNothingAgain", says: "the handler ran 2 times",
		},
		{
			name:    "version-of-before-trusted",
			changed: `if !MUTATED { LINE }`,
			in:      "internal/reconciler", test: "TestWhatTheCacheShowsIsTrustedUnlessSomethingNewerIsKnown", says: "version 9 is 0",
		},
		{
			name:    "status-full-update",
			changed: `if next.Subresource == journal.Status && MUTATED { answer = c.replaceStatus(ctx, edits, w.journal.Text()) }; LINE`,
			in:      "test/virtual", test: "TestConcurrentConditionsOfOthersAreKept", says: "FAIL",
		},
		{
			name: "patch-without-tests",
			changed: `operations := next.Changes.Operations()
				if MUTATED { operations = withoutTests(operations) }
				answer, err := c.s.r.Server.Patch(ctx, c.s.key, next.Subresource, operations)`,
			in: "test/virtual", test: "TestALateWriteDoesNotLandOnAReCreatedObject", says: "the handler of the old object wrote into the new one",
		},
		{
			name:    "lost-by-finalizer",
			changed: `Settled:    s.settled() || s.marked() && MUTATED,`,
			in:      "test/virtual", test: "TestLostRecordsOfFilteredKinds", says: "FAIL",
		},
		{
			name:    "effect-before-intent",
			changed: `LINE; if MUTATED { return intent, nil }`,
			in:      "test/virtual", test: "TestAnIntentIsStoredBeforeTheCall", says: "the record is",
		},
		{
			name:    "intent-forgotten",
			changed: `if found.Intent = s.done[id].Intent; MUTATED { found.Intent = nil } else if found.Intent != nil {`,
			in:      "test/explore", test: askingEffects, says: "accounts: the outcome differs",
		},
	}
}

// Each promise has a test that fails when a change breaks it. The mutants are compiled into one build of the tests, each behind a
// switch, and are switched on one at a time. Without a mutant, "make test" runs the same tests.
func TestMutantsAreKilled(t *testing.T) {
	programs := buildMutants(t)
	for _, bug := range mutants() {
		t.Run(bug.name, func(t *testing.T) { killMutant(t, programs[bug.in], bug) })
	}
}

// "make test" catches each mutant: the tests that do so are not in a part of "make test-all".
func TestEachMutantIsCaughtByMakeTest(t *testing.T) {
	list, err := os.ReadFile("tools/test-parts.txt")
	if err != nil {
		t.Fatal(err)
	}
	later := regexp.MustCompile(`(?m)^(?:race|explore|mutate|soak|terraform) +(\S+) +(\S+)$`).FindAllStringSubmatch(string(list), -1)
	if len(later) == 0 {
		t.Fatal("no test is in a part of make test-all")
	}
	for _, bug := range mutants() {
		test, _, _ := strings.Cut(bug.test, "/")
		for _, line := range later {
			if line[1] == bug.in && regexp.MustCompile("^"+line[2]+"$").MatchString(test) {
				t.Errorf("mutant %s is caught by %s, which make test does not run", bug.name, test)
			}
		}
	}
}
