package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

const day = 24 * time.Hour

// created is when the claims of these tests were created.
func created() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

func at(since time.Duration) *metav1.Time {
	moment := metav1.NewTime(created().Add(since))
	return &moment
}

// temporaryClaim is for pods labelled app=report: it expires after a day, and is kept for an hour after its use.
func temporaryClaim(changes ...func(*v1.EphemeralVolumeClaim)) *v1.EphemeralVolumeClaim {
	claim := claimOf("1G")
	claim.CreationTimestamp = *at(0)
	claim.Spec.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "report"}}
	claim.Spec.GracePeriod, claim.Spec.ExpiryPeriod = &metav1.Duration{Duration: time.Hour}, &metav1.Duration{Duration: day}
	for _, change := range changes {
		change(claim)
	}
	return claim
}

// usedUntil says what is remembered of the use of a claim that began with its creation: zero for until now.
func usedUntil(since time.Duration) func(*v1.EphemeralVolumeClaim) {
	return func(claim *v1.EphemeralVolumeClaim) {
		claim.Status.FirstUsed = at(0)
		if since > 0 {
			claim.Status.UnusedSince = at(since)
		}
	}
}

// podOn is a pod that mounts the volume of a claim.
func podOn(volume, name, app string, phase corev1.PodPhase) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volume},
	}}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main"}}
	pod.Status.Phase = phase
	return pod
}

func report1(phase corev1.PodPhase) corev1.Pod { return podOn("my-claim", "report-1", "report", phase) }

// going is a pod that is being deleted and is still there.
func going(pod corev1.Pod) corev1.Pod {
	pod.DeletionTimestamp = at(0)
	return pod
}

// ruling is what is expected of a verdict: the reason of its condition, what is remembered, and what will happen.
type ruling struct {
	Reason                          string
	FirstUsed, UnusedSince, Expires *metav1.Time
	Delete                          bool
}

type verdictCase struct {
	claim *v1.EphemeralVolumeClaim
	pods  []corev1.Pod
	now   time.Duration // since the creation
	want  ruling
}

func checkVerdicts(t *testing.T, cases map[string]verdictCase) {
	t.Helper()
	for title, test := range cases {
		t.Run(title, func(t *testing.T) {
			before := test.claim.DeepCopy()
			v := judge(test.claim, test.pods, created().Add(test.now))
			if diff := cmp.Diff(test.want, ruling{v.reason, v.firstUsed, v.unusedSince, v.expires, v.delete}); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.claim); diff != "" {
				t.Errorf("the claim was changed:\n%s", diff)
			}
		})
	}
}

func TestAClaimThatIsNotUsedExpires(t *testing.T) {
	without := func(claim *v1.EphemeralVolumeClaim) { claim.Spec.ExpiryPeriod = nil }
	checkVerdicts(t, map[string]verdictCase{
		"never used, at its creation":      {claim: temporaryClaim(), want: ruling{Reason: neverUsed, Expires: at(day)}},
		"never used, a moment before":      {claim: temporaryClaim(), now: day - 1, want: ruling{Reason: neverUsed, Expires: at(day)}},
		"never used, when it is time":      {claim: temporaryClaim(), now: day, want: ruling{Reason: expired, Expires: at(day), Delete: true}},
		"the operator was down for a week": {claim: temporaryClaim(), now: 7 * day, want: ruling{Reason: expired, Expires: at(day), Delete: true}},
		"it does not expire":               {claim: temporaryClaim(without), now: 1000 * day, want: ruling{Reason: neverUsed}},
		"a clock that is behind":           {claim: temporaryClaim(), now: -time.Hour, want: ruling{Reason: neverUsed, Expires: at(day)}},
		"a pod came when it was time": {
			claim: temporaryClaim(), now: 7 * day, pods: []corev1.Pod{report1(corev1.PodPending)},
			want: ruling{Reason: inUse, FirstUsed: at(7 * day)},
		},
		"a pod mounts another volume": {
			claim: temporaryClaim(), now: day, pods: []corev1.Pod{podOn("other", "report-1", "report", corev1.PodRunning)},
			want: ruling{Reason: expired, Expires: at(day), Delete: true},
		},
	})
}

func TestAClaimIsKeptWhileSelectedPodsUseIt(t *testing.T) {
	pods := map[string]corev1.Pod{
		"a pod that was just created": report1(""),
		"a pod that waits":            report1(corev1.PodPending),
		"a pod that runs":             report1(corev1.PodRunning),
		"a pod of unknown state":      report1(corev1.PodUnknown),
		"a pod that is being deleted": going(report1(corev1.PodRunning)),
	}
	cases := map[string]verdictCase{}
	for title, pod := range pods {
		cases[title] = verdictCase{claim: temporaryClaim(usedUntil(0)), now: 30 * day, pods: []corev1.Pod{pod}, want: ruling{Reason: inUse, FirstUsed: at(0)}}
	}
	ended := podOn("my-claim", "report-0", "report", corev1.PodSucceeded)
	cases["one pod has ended and the next one runs"] = verdictCase{
		claim: temporaryClaim(usedUntil(0)), now: 30 * day, pods: []corev1.Pod{ended, report1(corev1.PodRunning)},
		want: ruling{Reason: inUse, FirstUsed: at(0)},
	}
	cases["first seen between two seconds"] = verdictCase{
		claim: temporaryClaim(), now: time.Minute + 1, pods: []corev1.Pod{report1(corev1.PodRunning)},
		want: ruling{Reason: inUse, FirstUsed: at(time.Minute + time.Second)},
	}
	cases["every pod is selected"] = verdictCase{
		claim: temporaryClaim(func(claim *v1.EphemeralVolumeClaim) { claim.Spec.PodSelector = &metav1.LabelSelector{} }),
		pods:  []corev1.Pod{podOn("my-claim", "any", "", corev1.PodRunning)}, now: 30 * day,
		want: ruling{Reason: inUse, FirstUsed: at(30 * day)},
	}
	checkVerdicts(t, cases)
}

func TestAClaimIsDeletedAfterItsLastPod(t *testing.T) {
	const gone = 2 * day
	unused := ruling{Reason: noLongerUsed, FirstUsed: at(0), UnusedSince: at(gone), Expires: at(gone + time.Hour)}
	overdue := unused
	overdue.Reason, overdue.Delete = expired, true
	ever := unused
	ever.Expires = nil
	checkVerdicts(t, map[string]verdictCase{
		"the pod is gone":                                  {claim: temporaryClaim(usedUntil(0)), now: gone, want: unused},
		"the pod has succeeded":                            {claim: temporaryClaim(usedUntil(0)), now: gone, pods: []corev1.Pod{report1(corev1.PodSucceeded)}, want: unused},
		"the pod has failed":                               {claim: temporaryClaim(usedUntil(0)), now: gone, pods: []corev1.Pod{report1(corev1.PodFailed)}, want: unused},
		"within the grace period":                          {claim: temporaryClaim(usedUntil(gone)), now: gone + time.Hour - 1, want: unused},
		"after the grace period":                           {claim: temporaryClaim(usedUntil(gone)), now: gone + time.Hour, want: overdue},
		"the operator was down from when the pod was gone": {claim: temporaryClaim(usedUntil(gone)), now: 9 * day, want: overdue},
		"the operator was down when the pod went": {
			claim: temporaryClaim(usedUntil(0)), now: 9 * day,
			want: ruling{Reason: noLongerUsed, FirstUsed: at(0), UnusedSince: at(9 * day), Expires: at(9*day + time.Hour)},
		},
		"seen to be gone between two seconds": {
			claim: temporaryClaim(usedUntil(0)), now: gone - 1, want: unused,
		},
		"a pod comes back in time": {
			claim: temporaryClaim(usedUntil(gone)), now: gone + time.Minute, pods: []corev1.Pod{report1(corev1.PodPending)},
			want: ruling{Reason: inUse, FirstUsed: at(0)},
		},
		"a pod comes back late": {
			claim: temporaryClaim(usedUntil(gone)), now: 9 * day, pods: []corev1.Pod{report1(corev1.PodRunning)},
			want: ruling{Reason: inUse, FirstUsed: at(0)},
		},
		"another clock was ahead": {claim: temporaryClaim(usedUntil(gone)), now: gone - day, want: unused},
		"it is kept after its use": {
			claim: temporaryClaim(usedUntil(gone), func(claim *v1.EphemeralVolumeClaim) { claim.Spec.GracePeriod = nil }), now: 1000 * day, want: ever,
		},
	})
}

func TestAClaimIsKeptWhileOthersUseIt(t *testing.T) {
	other := podOn("my-claim", "debug", "shell", corev1.PodRunning)
	ended := podOn("my-claim", "debug", "shell", corev1.PodSucceeded)
	checkVerdicts(t, map[string]verdictCase{
		"never used by whom it is for": {claim: temporaryClaim(), now: 9 * day, pods: []corev1.Pod{other}, want: ruling{Reason: usedByOthers}},
		"no longer used by whom it is for": {
			claim: temporaryClaim(usedUntil(day)), now: 9 * day, pods: []corev1.Pod{report1(corev1.PodFailed), other},
			want: ruling{Reason: usedByOthers, FirstUsed: at(0), UnusedSince: at(day)},
		},
		"used by both": {
			claim: temporaryClaim(usedUntil(0)), now: 9 * day, pods: []corev1.Pod{other, report1(corev1.PodRunning)},
			want: ruling{Reason: inUse, FirstUsed: at(0)},
		},
		"the other one has ended": {
			claim: temporaryClaim(usedUntil(day)), now: 9 * day, pods: []corev1.Pod{ended},
			want: ruling{Reason: expired, FirstUsed: at(0), UnusedSince: at(day), Expires: at(day + time.Hour), Delete: true},
		},
	})
}

func TestAClaimIsKeptWithoutAReasonToDeleteIt(t *testing.T) {
	free := func(claim *v1.EphemeralVolumeClaim) { claim.Spec.PodSelector = nil }
	deleted := func(claim *v1.EphemeralVolumeClaim) { claim.DeletionTimestamp = at(0) }
	senseless := func(claim *v1.EphemeralVolumeClaim) {
		claim.Spec.PodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"two words": ""}}
	}
	checkVerdicts(t, map[string]verdictCase{
		"it is for no certain pods":      {claim: temporaryClaim(usedUntil(day), free), now: 9 * day},
		"it is being deleted":            {claim: temporaryClaim(usedUntil(day), deleted), now: 9 * day},
		"the selector selects no labels": {claim: temporaryClaim(senseless), now: 9 * day, want: ruling{Reason: invalidSelector}},
	})
}

func TestAVerdictIsToldInASentence(t *testing.T) {
	other := podOn("my-claim", "debug", "shell", corev1.PodRunning)
	tests := map[string]struct {
		claim *v1.EphemeralVolumeClaim
		pods  []corev1.Pod
		now   time.Duration
	}{
		"no selected pod has used the volume yet; the claim is deleted at 2030-01-02T12:00:00Z unless a pod uses it": {claim: temporaryClaim()},
		"a selected pod uses the volume": {claim: temporaryClaim(), pods: []corev1.Pod{report1(corev1.PodRunning)}},
		"no selected pod has used the volume since 2030-01-01T13:00:00Z; the claim is deleted at 2030-01-01T14:00:00Z unless a pod uses it": {
			claim: temporaryClaim(usedUntil(time.Hour)), now: time.Hour,
		},
		"no selected pod has used the volume since 2030-01-01T13:00:00Z": {claim: temporaryClaim(usedUntil(time.Hour)), now: day},
		"no selected pod has used the volume yet; pod debug uses it, which spec.podSelector does not select, so the claim is kept": {
			claim: temporaryClaim(), pods: []corev1.Pod{podOn("my-claim", "later", "shell", corev1.PodRunning), other},
		},
	}
	for want, test := range tests {
		if got := judge(test.claim, test.pods, created().Add(test.now)).message; got != want {
			t.Errorf("it says:\n%s\nwant:\n%s", got, want)
		}
	}
}
