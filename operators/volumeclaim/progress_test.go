package main

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

func claimOf(size string) *v1.EphemeralVolumeClaim {
	return &v1.EphemeralVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "my-claim", Namespace: "default", Generation: 3},
		Spec:       v1.EphemeralVolumeClaimSpec{Size: resource.MustParse(size)},
	}
}

func volumeIn(phase corev1.PersistentVolumeClaimPhase, capacity string) *corev1.PersistentVolumeClaim {
	volume := &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
	if capacity != "" {
		volume.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	}
	return volume
}

func TestStatusFollowsTheVolume(t *testing.T) {
	gigabyte, two, five := resource.MustParse("1G"), resource.MustParse("2G"), resource.MustParse("5G")
	tests := map[string]struct {
		volume *corev1.PersistentVolumeClaim
		done   bool
		want   v1.EphemeralVolumeClaimStatus
	}{
		"no volume yet": {
			volume: volumeIn(corev1.ClaimPending, ""),
			want: v1.EphemeralVolumeClaimStatus{Phase: v1.Pending, Conditions: []metav1.Condition{{
				Type: "Ready", Status: "False", Reason: "WaitingForVolume", Message: "waiting for a volume of 2G", ObservedGeneration: 3,
			}}},
		},
		"a volume that is smaller than the claim": {
			volume: volumeIn(corev1.ClaimBound, "1G"),
			want: v1.EphemeralVolumeClaimStatus{Phase: v1.Resizing, Capacity: &gigabyte, Conditions: []metav1.Condition{{
				Type: "Ready", Status: "False", Reason: "WaitingForSpace", Message: "the volume grows from 1G to 2G", ObservedGeneration: 3,
			}}},
		},
		"a volume that another client has grown": {
			volume: volumeIn(corev1.ClaimBound, "5G"), done: true,
			want: v1.EphemeralVolumeClaimStatus{Phase: v1.Bound, Capacity: &five, Conditions: []metav1.Condition{{
				Type: "Ready", Status: "True", Reason: "VolumeBound", ObservedGeneration: 3,
				Message: "there is a volume of 5G, more than spec.size asks for, which is 2G",
			}}},
		},
		"a volume of the claim's size": {
			volume: volumeIn(corev1.ClaimBound, "2G"), done: true,
			want: v1.EphemeralVolumeClaimStatus{Phase: v1.Bound, Capacity: &two, Conditions: []metav1.Condition{{
				Type: "Ready", Status: "True", Reason: "VolumeBound", Message: "there is a volume of 2G", ObservedGeneration: 3,
			}}},
		},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			claim := claimOf("2G")
			if done := reportProgress(claim, test.volume); done != test.done {
				t.Errorf("done: %t, want %t", done, test.done)
			}
			if diff := cmp.Diff(test.want, claim.Status, ignoreTimes()); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatTakesLongIsAskedForSeldom(t *testing.T) {
	tests := map[time.Duration]time.Duration{
		0:                250 * time.Millisecond,
		time.Second:      250 * time.Millisecond,
		20 * time.Second: 5 * time.Second,
		time.Hour:        time.Minute,
	}
	claim := claimOf("1G")
	reportProgress(claim, volumeIn(corev1.ClaimPending, ""))
	since := claim.Status.Conditions[0].LastTransitionTime
	for waited, want := range tests {
		if got := patience(claim, since.Add(waited)); got != want {
			t.Errorf("after %s it is looked again in %s, want %s", waited, got, want)
		}
	}
}

func TestARefusalKeepsWhatIsKnownOfTheVolume(t *testing.T) {
	claim := claimOf("1G")
	reportProgress(claim, volumeIn(corev1.ClaimBound, "1G"))
	want := claim.Status.DeepCopy()
	want.Conditions[0].Status, want.Conditions[0].Reason, want.Conditions[0].Message = "False", "VolumeRefused", "over quota"

	reportRefusal(claim, errors.New("over quota"))

	if diff := cmp.Diff(*want, claim.Status, ignoreTimes()); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestTheVolumeIsAsTheClaimAsks(t *testing.T) {
	class := "fast"
	claim := claimOf("2G")
	claim.Spec.StorageClassName = &class
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	want := corev1.PersistentVolumeClaimSpec{
		AccessModes: claim.Spec.AccessModes, StorageClassName: &class,
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2G")},
		},
	}
	if diff := cmp.Diff(want, volumeFor(claim, claim.Spec.Size).Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func ignoreTimes() cmp.Option { return cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime") }
