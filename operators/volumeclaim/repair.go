package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

// repairVolume restores a PersistentVolumeClaim that was deleted or relabelled, and reports one that another client has grown, once it has been bound.
// Before that create-pvc retries by itself. A PersistentVolumeClaim that is being deleted is replaced when it is gone: pods that use it can delay
// that. The data of a deleted volume is lost, as with any PersistentVolumeClaim.
func repairVolume(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) error {
	if c.Object.Status.Capacity == nil {
		return nil
	}
	volume, err := existingVolume(ctx, c)
	switch {
	case err != nil:
		return err
	case volume == nil:
		volume = volumeFor(c.Object, c.Object.Spec.Size)
		if err := c.Apply(ctx, volume, einmal.CopyLabels("*")); err != nil {
			return err
		}
		c.Event(einmal.EventWarning, "VolumeReplaced", "the PersistentVolumeClaim %s was deleted; a new one without its data replaces it", c.Object.Name)
		return awaitVolume(c, volume)
	case volume.DeletionTimestamp != nil:
		return nil
	case !labelled(volume, c.Object):
		if volume, _, err = applyVolume(ctx, c); err != nil {
			return err
		}
	}
	if ready := meta.FindStatusCondition(c.Object.Status.Conditions, v1.ConditionReady); ready == nil {
		return nil
	} else if ready.Reason == waitingForVolume || ready.Reason == volumeBound && grown(c.Object, volume) {
		return awaitVolume(c, volume)
	}
	return nil
}

// grown reports whether a volume has more space than the status of its claim says, and enough for the claim. While it has not, resize-pvc waits for it.
func grown(claim *v1.EphemeralVolumeClaim, volume *corev1.PersistentVolumeClaim) bool {
	capacity := volume.Status.Capacity[corev1.ResourceStorage]
	return capacity.Cmp(*claim.Status.Capacity) > 0 && capacity.Cmp(claim.Spec.Size) >= 0
}

// awaitVolume reports the progress of a volume that was applied again, and waits until it is bound.
func awaitVolume(c *einmal.Change[v1.EphemeralVolumeClaim], volume *corev1.PersistentVolumeClaim) error {
	if reportProgress(c.Object, volume) {
		return nil
	}
	return einmal.RequeueAfter(patience(c.Object, time.Now()))
}

// labelled reports whether a volume has all labels of its claim, but none by which a tool tracks the claim: the tool could delete the volume, and its
// data with it. Earlier releases copied these too.
func labelled(volume *corev1.PersistentVolumeClaim, claim *v1.EphemeralVolumeClaim) bool {
	for key, value := range claim.Labels {
		found, is := volume.Labels[key]
		if copied := is && found == value; copied == einmal.IsTrackingLabel(key) {
			return false
		}
	}
	return true
}
