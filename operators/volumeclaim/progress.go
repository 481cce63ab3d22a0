package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

// The reasons of the condition Ready that handlers look at.
const (
	waitingForVolume = "WaitingForVolume"
	volumeBound      = "VolumeBound"
)

// reportProgress writes the state of the volume into the claim's status and reports whether the volume is as requested.
func reportProgress(claim *v1.EphemeralVolumeClaim, volume *corev1.PersistentVolumeClaim) bool {
	wanted := claim.Spec.Size
	if volume.Status.Phase != corev1.ClaimBound {
		claim.Status.Phase = v1.Pending
		notReady(claim, waitingForVolume, fmt.Sprintf("waiting for a volume of %s", &wanted))
		return false
	}
	capacity := volume.Status.Capacity[corev1.ResourceStorage]
	claim.Status.Capacity = &capacity
	if capacity.Cmp(wanted) < 0 {
		claim.Status.Phase = v1.Resizing
		notReady(claim, "WaitingForSpace", fmt.Sprintf("the volume grows from %s to %s", &capacity, &wanted))
		return false
	}
	claim.Status.Phase = v1.Bound
	message := fmt.Sprintf("there is a volume of %s", &capacity)
	if capacity.Cmp(wanted) > 0 {
		message += fmt.Sprintf(", more than spec.size asks for, which is %s", &wanted)
	}
	setReady(claim, metav1.ConditionTrue, volumeBound, message)
	return true
}

// reportRefusal writes into the claim's status why its volume could not be requested.
func reportRefusal(claim *v1.EphemeralVolumeClaim, err error) {
	if claim.Status.Phase == "" {
		claim.Status.Phase = v1.Pending
	}
	notReady(claim, "VolumeRefused", err.Error())
}

func notReady(claim *v1.EphemeralVolumeClaim, reason, message string) {
	setReady(claim, metav1.ConditionFalse, reason, message)
}

func setReady(claim *v1.EphemeralVolumeClaim, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&claim.Status.Conditions, metav1.Condition{
		Type: v1.ConditionReady, Status: status, Reason: reason, Message: message, ObservedGeneration: claim.Generation,
	})
}

// patience returns when to check a claim that is not ready again: after a quarter of the time that it has not been ready. Most volumes
// appear at once, and slow ones are not queried every second.
func patience(claim *v1.EphemeralVolumeClaim, now time.Time) time.Duration {
	var waited time.Duration
	if ready := meta.FindStatusCondition(claim.Status.Conditions, v1.ConditionReady); ready != nil {
		waited = now.Sub(ready.LastTransitionTime.Time)
	}
	return min(max(waited/4, 250*time.Millisecond), time.Minute)
}
