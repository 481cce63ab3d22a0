package mutants_test

// effectMutants returns the bugs in the handling of effects, attempts and handler ids.
func effectMutants() []mutant {
	const core = "internal/core/handler"
	return []mutant{
		{
			name: "saved-in-the-stop-margin", changed: `if MUTATED { return r.outlasting(parent, r.Settings.Grace) }; LINE`,
			in: "test/virtual", test: "TestAnOutcomeSoonAfterTheGracePeriodIsSaved", says: `ran ["make" "make"]`,
		},
		{
			name: "ended-goroutine", changed: `if value := recover(); value != nil || !returned && !MUTATED {`,
			in: "test/virtual", test: "TestAHandlerThatEndsItsGoroutineIsCalledAgain", says: `ran ["it"], want ["it" "it"]`,
		},
		{
			name: "shortest-retry", changed: `if MUTATED { return &invoke.RetryAfterError{Delay: max(d, time.Millisecond), Err: err} }; LINE`,
			in: "test/virtual", test: "TestRetryAfterHasAFloor", says: "at most ten in a second",
		},
		{
			name: "wait-from-the-intent", changed: `if !MUTATED { LINE }`,
			in: "test/virtual", test: "TestALookupWaitsAfterALongCall", says: "after the end of the call, want about 30 s",
		},
		{
			name: "step-result-forgotten", changed: `if MUTATED { done.Result = nil }; LINE`,
			in: "test/virtual", test: "TestAResultIsTheSameInEachAttempt", says: "FAIL",
		},
		{
			name: "overtaken-intent", changed: `if !MUTATED && w.intends && c.s.memory.record != was && c.s.seen.Record().Stored() != w.journal.Text() {`,
			in: "test/virtual", test: "TestAnOvertakenIntentCallsNothing", says: `called: ["open in attempt II"]`,
		},
		{
			name: "wait-lost-at-restart",
			changed: `if d.s.memory.ours == "" && found.Record != nil && MUTATED {
				for id, entry := range found.Record.Handlers {
					entry.Next = time.Time{}
					*found.Record = found.Record.With(id, entry)
				}
			}; LINE`,
			in: "test/virtual", test: "TestARestartDoesNotShortenAWait", says: `ran ["make" "make"], want ["make"]`,
		},
		{
			name: "stop-ignored", changed: `if !MUTATED && a.s.r.stopping() {`,
			in: "test/virtual", test: "TestNoHandlerBeginsOnceTheOperatorStops", says: `ran ["first" "second"], want ["first"]`,
		},
		{
			name: "intent-forgotten-with-a-change", changed: `if MUTATED || !record.Unknown(entry.Steps) {`,
			in: core, test: "TestAnIntentOutlastsWhatEndsItsHandling", says: "a_change_that_is_taken_back,_and_made_again",
		},
		{
			name: "intent-forgotten-outside", changed: `unknown := !MUTATED && record.Unknown(entry.Steps)`,
			in: core, test: "TestAnIntentOutlastsWhatEndsItsHandling", says: "an_object_that_leaves_the_filter",
		},
		{
			name: "intent-of-another-replica", changed: `case !MUTATED && previous.Cause == entry.Cause:`,
			in: core, test: "TestAFailureKeepsTheIntentsOfAnotherReplica", says: "the intent is forgotten",
		},
		{
			name: "entry-of-another-verb", changed: `case has && !MUTATED && !d.fits(entry):`,
			in: core, test: "TestAnIDThatIsUsedAgainForAnotherVerb", says: `"id(delete, 1)"`,
		},
		{
			name: "undeclared-creation-done", changed: `if !declared && (MUTATED || created && !record.Unknown(entry.Steps)) {`,
			in: core, test: "TestACreationThatNeverSucceededIsNotDone", says: "the creation counts as done",
		},
		{
			name: "roll-back-of-an-id", changed: `if MUTATED { return r }; LINE`,
			in: core, test: "TestACreationThatNeverSucceededIsNotDone", says: "the creation counts as done",
		},
	}
}
