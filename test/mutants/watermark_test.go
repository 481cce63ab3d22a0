package mutants_test

// watermarkMutants returns the bugs in the handling of arrivals and watermarks.
func watermarkMutants() []mutant {
	const queued, beside = "TestAnObjectThatWaitsInTheQueueIsNotLost", "TestTheFirstListIsHandledBesideLiveChanges"
	const others = "TestOneObjectDoesNotKeepTheWatermarkFromOthers"
	const twice = `ours: handlers ran ["make (create, attempt 1)" "make (create, attempt 1) maybe repeated"]`
	return []mutant{
		{name: "arrival-unnoticed", changed: `if !MUTATED { LINE }`, in: "test/virtual", test: queued, says: `handlers ran ""`},
		{
			name:    "missing-ignored",
			changed: `if oldest, _, found := w.oldest(); found && !MUTATED {`,
			in:      "test/virtual", test: queued, says: `handlers ran ""`,
		},
		{
			name:    "late-arrival-is-lost",
			changed: `if !s.memory.older && !MUTATED {`,
			in:      "test/virtual", test: "TestAnObjectThatArrivesLateIsNotLost", says: "late: handlers ran []",
		},
		{
			name: "lost-by-old-list", changed: `lost := !MUTATED && d.s.plan.Cause == cause.Lost`,
			in: "test/virtual", test: "TestAFirstListThatIsOldLosesNoRecord", says: "a record counts as lost",
		},
		{
			name:    "lost-is-created",
			changed: `return !MUTATED && s.r.Store.Covers(s.books())`,
			in:      "test/virtual", test: others, says: twice,
		},
		{
			name:    "terminating-holds",
			changed: `if !MUTATED && s.seen.Deleting() {`,
			in:      "test/virtual", test: others, says: twice,
		},
		{name: "newer-record-is-missing", changed: `if !MUTATED { LINE }`, in: "test/virtual", test: others, says: twice},
		{
			name:    "candidates-unbounded",
			changed: `if len(w.candidates) > 2*maxCandidates && !MUTATED {`,
			in:      "internal/core/record", test: "TestTheWatermarkIsBoundedInMemory", says: "it allocated",
		},
		{
			name:    "waiting-is-a-pass",
			changed: `if MUTATED && err == nil { r.FirstList.Done(key) }; LINE`,
			in:      "test/virtual", test: "TestAnObjectThatWaitsForAnIndexWasThereBefore", says: `handlers ran ["make (create, attempt 1)"]`,
		},
		{name: "starved-by-live-changes", changed: `if !MUTATED { LINE }`, in: "test/virtual", test: beside, says: "waits: handlers ran []"},
		{
			name:    "low-priority-stays",
			changed: `normal := 0; if MUTATED { normal = -100 }`,
			in:      "test/virtual", test: beside, says: `waits: handlers ran ["make (create, attempt 1) maybe repeated"]`,
		},
		{
			name:    "late-namespace-is-new",
			changed: `if l.complete && MUTATED { return }; LINE`,
			in:      "test/virtual", test: "TestObjectsOfANamespaceThatIsGrantedLaterWereThereBefore", says: `closed-0: handlers ran ["make (create, attempt 1)"]`,
		},
		{
			name:    "narrow-cache",
			changed: `s.watermarks.narrow = narrow && !MUTATED`,
			in:      "test/virtual", test: "TestAWiderCacheShowsNewObjects", says: "ours: handlers ran",
		},
	}
}
