package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

// repairVolume restores a PersistentVolumeClaim that was deleted or relabelled, once it has been bound. Before that create-pvc retries by
// itself. A PersistentVolumeClaim that is being deleted is replaced when it is gone: pods that use it can delay that. The data of a deleted
// volume is lost, as with any PersistentVolumeClaim.
func repairVolume(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) error {
	if c.Object.Status.Capacity == nil {
		return nil
	}
	volume := &corev1.PersistentVolumeClaim{}
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(c.Object), volume)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read the volume: %w", err)
	case err != nil:
		c.Event(einmal.EventWarning, "VolumeReplaced", "the PersistentVolumeClaim %s was deleted; a new one without its data replaces it", c.Object.Name)
		return applyAgain(ctx, c)
	case volume.DeletionTimestamp != nil:
		return nil
	case !labelled(volume, c.Object):
		return applyAgain(ctx, c)
	}
	ready := meta.FindStatusCondition(c.Object.Status.Conditions, v1.ConditionReady)
	if ready == nil || ready.Reason != waitingForVolume || reportProgress(c.Object, volume) {
		return nil
	}
	return einmal.RequeueAfter(patience(c.Object, time.Now()))
}

// applyAgain requests the volume again. A failure is retried; it does not change the status, which the other handlers write.
func applyAgain(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) error {
	volume := volumeFor(c.Object)
	if err := c.Apply(ctx, volume); err != nil {
		return err
	}
	if reportProgress(c.Object, volume) {
		return nil
	}
	return einmal.RequeueAfter(patience(c.Object, time.Now()))
}

// labelled reports whether a volume has all labels of its claim.
func labelled(volume *corev1.PersistentVolumeClaim, claim *v1.EphemeralVolumeClaim) bool {
	for key, value := range claim.Labels {
		if volume.Labels[key] != value {
			return false
		}
	}
	return true
}
