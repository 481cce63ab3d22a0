package mutants_test

// recordMutants returns the bugs in the handling of records and writes.
func recordMutants() []mutant {
	return append(conflictMutants(), []mutant{
		{
			name:    "former-removed-first",
			changed: `if MUTATED { removeFormerFirst(target, &main, &status) }; LINE`,
			in:      "test/virtual", test: "TestARecordMovesBetweenCarriersDespiteACrash", says: "calls (-want +got)",
		},
		{
			name: "forged-record-believed", changed: `LINE; if MUTATED { former = record.FormerNewer }`,
			in: "test/virtual", test: "TestAnAnnotationIsNoRecordWhereRecordsAreInTheStatus", says: "calls (-want +got)",
		},
		{
			name: "move-not-stored", changed: `if !MUTATED && w.journal.Writes(c.s.seen.Record().Stored()) {`,
			in: "test/virtual", test: "TestAnOldRecordThatCouldNotBeRemovedIsNotRead", says: "calls (-want +got)",
		},
		{
			name:    "deleted-believed",
			changed: `if !MUTATED && !read.Deleting() {`,
			in:      "test/virtual", test: "TestARecordThatSaysDeletedOfALiveObjectIsCorrected", says: "the record still says that the delete handlers have run",
		},
		{
			name: "denied-record-forgotten", changed: `if !MUTATED { LINE }`,
			in: "test/virtual", test: "TestADeniedRecordHoldsNothingBack/status/a_policy", says: "make, attempt 1",
		},
		{
			name: "denied-record-first", changed: `case !MUTATED && kube.Denied(err) && len(w.journal.Edits()) == 0:`,
			in: "test/virtual", test: "TestADeniedRecordHoldsNothingBack/status/a_policy", says: "resize, 1 change",
		},
		{
			name:    "hidden-record",
			changed: `hidden := d.s.view.HidesRecords && (found == nil && !MUTATED || d.s.memory.removes(time.Now())); doubted = doubted && !MUTATED`,
			in:      "test/virtual", test: "TestARecordMovesBetweenCarriersDespiteACrash", says: "calls (-want +got)",
		},
		{
			name:    "former-left",
			changed: `if !MUTATED { LINE }`,
			in:      "test/virtual", test: "TestARecordThatCannotBeRemovedIsRemovedLater", says: "the record is in both carriers",
		},
		{
			name: "keeps-overwritten-record",
			changed: `kept := a.s.seen.Record().InPlace() || MUTATED && a.s.seen.Record().Stored() != ""
				keepRecord = keepRecord || !a.s.plan.Tidied && (kept || a.s.plan.Unrecorded)`,
			in: "test/virtual", test: "TestAnOverwrittenRecordIsPutBack", says: "the record is not put back",
		},
		{
			name: "older-record-believed", changed: `if found.Record == nil || !MUTATED && found.Record.OlderThan(kept) {`,
			in: "test/virtual", test: "TestARecordOfAnOpenCreationThatComesBackRunsNothing", says: `"make 2" "make 3" "make 2"`,
		},
		{
			name: "record-not-counted", changed: `if !MUTATED { LINE }`,
			in: "test/virtual", test: "TestARecordThatGoesBackWithTheContentHidesNoChange", says: `want ["make 1" "invoice" "make 2" "make 3" "tell 1 to 2" "tell 2 to 1"]`,
		},
		{
			name:    "record-not-reduced",
			changed: `if MUTATED { return Concession{}, false }; LINE`,
			in:      "test/virtual", test: "TestARecordFitsIntoAnObjectThatIsNearlyFull", says: "passes have failed",
		},
		{
			name:    "record-blocks-deletion",
			changed: `if !MUTATED { LINE }`,
			in:      "test/virtual", test: "TestADeletionGoesOnWithoutRoomForTheRecord/another_finalizer:_false", says: "the object is gone: false",
		},
		{
			name:    "old-finalizer",
			changed: `if !MUTATED { LINE }`,
			in:      "test/virtual", test: "TestNoFinalizerIsAddedToAnObjectThatIsBeingDeleted/handled_before,_record_in_the_status", says: "unmake (delete, attempt 1)",
		},
		{
			name:    "old-removal",
			changed: `if j.finalizer == handler.Keep || j.finalizer == plan.Finalizer || MUTATED && j.finalizer == handler.Remove {`,
			in:      "test/virtual", test: "TestAFinalizerIsNotRemovedFromAnObjectThatMatchesAgain", says: "finalizer requests",
		},
		{
			name:    "runs-after-deletion",
			changed: `return !MUTATED`,
			in:      "test/virtual", test: "TestRemainingHandlersDoNotRunForAnObjectThatHasChanged", says: "second 1",
		},
		{
			name:    "finalizer-before-record",
			changed: `if Resource(target.Carrier, target.HasStatus) == Status && (MUTATED || !target.Removes) {`,
			in:      "test/virtual", test: "TestACrashWhenTheFinalizerGoesRepeatsNoDeleteHandler", says: "calls (-want +got)",
		},
		{
			name:    "deletion-not-recorded",
			changed: `Released: removes && (MUTATED || len(object.List(c.s.seen.Raw(), "metadata", "finalizers")) == 1 && c.s.plan.Cause == cause.Delete),`,
			in:      "test/virtual", test: "TestACrashWhenTheFinalizerGoesRepeatsNoDeleteHandler", says: "calls (-want +got)",
		},
	}...)
}

// conflictMutants returns the bugs by which one writer takes away what another one has written, or what could not be written is
// lost.
func conflictMutants() []mutant {
	const twoWriters = "TestAConflictKeepsTheOutcomesOfBothWriters"
	return []mutant{
		{
			name:    "record-without-test",
			changed: `if !MUTATED { LINE }`,
			in:      "test/virtual", test: twoWriters, says: "calls (-want +got)",
		},
		{
			name:    "old-plan-after-conflict",
			changed: `if !MUTATED { LINE }`,
			in:      "test/virtual", test: twoWriters, says: "calls (-want +got)",
		},
		{
			name:    "uid-not-tested",
			changed: `if !MUTATED { LINE }`,
			in:      "test/virtual", test: "TestALateWriteDoesNotLandOnAReCreatedObject", says: "the handler of the old object wrote into the new one",
		},
		{
			name:    "unsaved-forgotten",
			changed: `if !MUTATED { LINE }`,
			in:      "test/virtual", test: "TestWhatCannotBeSavedIsNotDoneAgain", says: "calls (-want +got)",
		},
	}
}
