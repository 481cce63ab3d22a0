package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

// temporary reports whether a claim has a podSelector.
func temporary(claim *v1.EphemeralVolumeClaim) bool { return claim.Spec.PodSelector != nil }

// keep removes the usage from the status of a claim whose podSelector was removed.
func keep(_ context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) error {
	report(c, verdict{})
	return nil
}

// deleteUnused deletes a claim that its pods do not need any more. Until then it writes the expiry into the status and waits. Changes of
// the pods or of the claim trigger it earlier.
func deleteUnused(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) error {
	pods := &corev1.PodList{}
	if err := c.Client.List(ctx, pods, client.InNamespace(c.Object.Namespace)); err != nil {
		return fmt.Errorf("list the pods that may use the volume: %w", err)
	}
	now := time.Now()
	verdict := judge(c.Object, pods.Items, now)
	if verdict.delete {
		return deleteClaim(ctx, c, verdict)
	}
	report(c, verdict)
	if verdict.expires == nil {
		return nil
	}
	return einmal.RequeueAfter(verdict.expires.Sub(now))
}

// deleteClaim deletes the claim unless it has changed since the verdict; then the next reconciliation judges it again. The garbage
// collector deletes the volume.
func deleteClaim(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim], verdict verdict) error {
	err := c.Client.Delete(ctx, c.Object, client.Preconditions{UID: &c.Object.UID, ResourceVersion: &c.Object.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete the claim: %w", err)
	}
	c.Log.Info("deleted the claim", "because", verdict.message)
	c.Event(einmal.EventNormal, verdict.reason, verdict.message)
	return nil
}

// report writes a verdict into the status, and records an event if it is new.
func report(c *einmal.Change[v1.EphemeralVolumeClaim], verdict verdict) {
	status := &c.Object.Status
	status.FirstUsed, status.UnusedSince, status.Expires = verdict.firstUsed, verdict.unusedSince, verdict.expires
	if verdict.reason == "" {
		meta.RemoveStatusCondition(&status.Conditions, v1.ConditionUsed)
		return
	}
	before := meta.FindStatusCondition(status.Conditions, v1.ConditionUsed)
	if before == nil || before.Reason != verdict.reason || before.Message != verdict.message {
		c.Event(verdict.severity(), verdict.reason, verdict.message)
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1.ConditionUsed, Status: verdict.used, Reason: verdict.reason, Message: verdict.message, ObservedGeneration: c.Object.Generation,
	})
}

// usedBy returns the claims whose volumes a pod mounts. A volume has the name of its claim.
func usedBy(pod *corev1.Pod) []types.NamespacedName {
	var claims []types.NamespacedName
	for _, volume := range pod.Spec.Volumes {
		if mounted := volume.PersistentVolumeClaim; mounted != nil {
			claims = append(claims, types.NamespacedName{Name: mounted.ClaimName})
		}
	}
	return claims
}

// itself lets a change of a temporary claim trigger its handler before the planned expiry.
func itself(claim *v1.EphemeralVolumeClaim) []types.NamespacedName {
	if !temporary(claim) {
		return nil
	}
	return []types.NamespacedName{{Name: claim.Name}}
}
