package mutants_test

// edgeMutants returns the bugs in the handling of what the API server answers, and write loops.
func edgeMutants() []mutant {
	const kube = "internal/edge/kube"
	return append([]mutant{
		{
			name: "any-404-is-gone", changed: `if o.missing(err, key.Name) || MUTATED && apierrors.IsNotFound(err) {`,
			in: "test/virtual", test: "TestNotFoundForAnotherReasonEndsNoDaemon", says: "times, want once",
		},
		{
			name: "404-not-confirmed", changed: `if MUTATED { return nil, ErrGone }; LINE`,
			in: "test/virtual", test: "TestNotFoundForAnotherReasonEndsNoDaemon", says: "times, want once",
		},
		{
			name: "gone-for-ever", changed: `LINE; if MUTATED { refuted, f.recheck = false, time.Time{} }`,
			in: "test/virtual", test: "TestNotFoundForAnotherReasonDoesNotSilenceAnObject/a_read_claims_that_the_object_is_gone", says: "the calls were [make resize to 2]",
		},
		{
			name:    "pod-gone-before-grace-period",
			changed: `LINE; if MUTATED && object.Text(answer, "metadata", "deletionTimestamp") != "" { f.over = true }`,
			in:      "test/virtual", test: "TestADaemonWritesInTheGracePeriodOfItsPod", says: "labels map[drained:begun]",
		},
		{
			name: "suspended-machine-leads", changed: `if !MUTATED { LINE }`,
			in: kube, test: "TestASuspendedMachineDoesNotHoldTheLease", says: "it is held after the suspension",
		},
		{
			name: "other-holder-ignored", changed: `if !MUTATED && err == nil && record.HolderIdentity != l.Identity() {`,
			in: kube, test: "TestALeaseThatAnotherProcessHoldsIsNotHeld", says: "held by them: held is true",
		},
		{
			name: "no-read-in-foreign-manager", changed: `if MUTATED && !r.Elects { return false }; LINE`,
			in: "test/virtual", test: "TestAFirstListThatIsOldRepeatsNoHandler", says: "the handler ran 2 times",
		},
		{
			name: "apply-takes-over", changed: `if !MUTATED { LINE }`,
			in: "test/virtual", test: "TestApplyDoesNotTakeOverAnObjectThatAppearsMeanwhile", says: "Apply returned [<nil>]",
		},
		{
			name: "apply-skips-drift", changed: `if !MUTATED && (found.GetUID() != last.uid || found.GetResourceVersion() != last.version) {`,
			in: "test/virtual", test: "TestAChildThatIsAsAppliedNeedsNoRequest", says: "the child was not restored",
		},
		{
			name: "prune-without-preconditions", changed: `client.Preconditions{UID: &found.UID, ResourceVersion: map[bool]*string{false: &found.ResourceVersion}[MUTATED]})`,
			in: "test/virtual", test: "TestAChildThatChangesHandsMeanwhileIsNotDeleted", says: "a child that has no controller any more",
		},
		{
			name: "prune-takes-from-others", changed: `if !MUTATED && (found.DeletionTimestamp != nil || controller == nil || controller.UID != c.Owner.Reference.UID) {`,
			in: "test/virtual", test: "TestAChildThatChangesHandsMeanwhileIsNotDeleted", says: "a child that has no controller any more",
		},
		{
			name: "wrong-clock-believed", changed: `if !MUTATED && entry.Outcome == record.Retry && !entry.Asked && next.Sub(d.state.Now) > declared.Limits.longestWait() {`,
			in: "internal/core/handler", test: "TestAWaitThatAWrongClockHasRecordedEnds", says: "after 5 minutes by the right clock it runs []",
		},
	}, loopMutants()...)
}

// loopMutants returns the bugs in slowing down writes that go on and on, and in what triggers a run.
func loopMutants() []mutant {
	return []mutant{
		{
			name: "own-loop-not-slowed", changed: `if !MUTATED { LINE }`,
			in: "test/virtual", test: "TestTwoHandlersThatUndoEachOtherAreSlowedDown", says: "500 calls in the first second",
		},
		{
			name: "pause-delays-finalizer", changed: `if l.held.IsZero() || !MUTATED && l.s.plan.Finalizer == handler.Add {`,
			in: "test/virtual", test: "TestConflictPausesDelayNoFinalizerAndNoDeletion/the_finalizer_is_put_back", says: "it waits",
		},
		{
			name: "own-status-write-not-awaited", changed: `LINE; if next.Subresource == journal.Status && MUTATED { c.s.memory.freshness.newest = "" }`,
			in: "test/virtual", test: "TestAnOldEventAfterAWriteOfTheStatusRunsNothingAgain", says: "the handler ran 2 times",
		},
		{
			name: "restored-etcd-unnoticed", changed: `if !isLower(newest, seen) || MUTATED {`,
			in: "test/virtual", test: "TestARestoredEtcdIsNoticed", says: "is logged 0 times",
		},
		{
			name: "release-forgotten", changed: `LINE; c.s.memory.released = c.s.memory.released && !MUTATED`,
			in: "test/virtual", test: "TestADeletionWhoseAnswerIsLostIsNoLoss", says: "is logged 0 times",
		},
		{
			name: "daemon-after-restore", changed: `if MUTATED { return }; LINE`,
			in: "test/virtual", test: "TestADaemonSeesItsObjectOfARestoredEtcd", says: "handlers ran",
		},
		{
			name: "trigger-during-a-run-lost", changed: `LINE; if MUTATED { defer a.s.r.State.Objects.TakeTriggers(a.s.key, run.ID) }`,
			in: "test/virtual", test: "TestARelatedChangeDuringARunIsNotLost", says: "ConfigMap default/team modified",
		},
		{
			name: "trigger-dropped", changed: `if !MUTATED { LINE }`,
			in: "test/virtual", test: "TestARelatedChangeDuringARunIsNotLost", says: "ConfigMap default/team added",
		},
		{
			name: "shared-owner-lost", changed: `if !MUTATED { LINE }`,
			in: "test/virtual", test: "TestAnOwnerThatComesMeanwhileIsKept", says: "boss: owner",
		},
		{
			name: "programming-error-retried", changed: `if !MUTATED { LINE }`,
			in: "test/virtual", test: "TestAProgrammingErrorIsNotRetriedInTheSameProcess/finalizers", says: "in the first process: called",
		},
	}
}

// labelMutants returns the bugs in the labels that children get from their owners.
func labelMutants() []mutant {
	return []mutant{
		{
			name: "tracking-labels-copied", changed: `tracking := !MUTATED && IsTrackingLabel(key) && !s.tracking`,
			in: "test/virtual", test: "TestApplyCopiesTheLabelsThatAreNamed/all", says: "labels of the child",
		},
		{
			name: "immutable-template-relabeled", changed: `if !MUTATED { LINE }`,
			in: "test/virtual", test: "TestChildrenLoseTheLabelsThatAnEarlierReleaseCopied", says: "field is immutable",
		},
	}
}

// ownerMutants returns the bugs in taking back children.
func ownerMutants() []mutant {
	return []mutant{
		{
			name: "takes-back-unasked", changed: `if !MUTATED && c.FormerUID == "" {`,
			in: "test/virtual", test: "TestApplyDoesNotTakeOverAnObjectThatAppearsMeanwhile", says: "Apply returned [<nil>]",
		},
		{
			name: "takes-back-from-any-owner", changed: `return c.appliedFor(existing) == c.FormerUID || MUTATED && c.appliedFor(existing) != ""`,
			in: "test/virtual", test: "TestObjectsOfOthersAreNotTakenBack", says: "Apply says <nil>, CheckOwner apply <nil>, want ",
		},
	}
}
