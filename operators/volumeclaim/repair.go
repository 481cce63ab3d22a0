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
		volume = volumeFor(c.Object)
		if err := c.Apply(ctx, volume); err != nil {
			return err
		}
		c.Event(einmal.EventWarning, "VolumeReplaced", "the PersistentVolumeClaim %s was deleted; a new one without its data replaces it", c.Object.Name)
		return awaitVolume(c, volume)
	case volume.DeletionTimestamp != nil:
		return nil
	case !labelled(volume, c.Object):
		volume = volumeFor(c.Object)
		if err := c.Apply(ctx, volume); err != nil {
			return err
		}
		return awaitVolume(c, volume)
	}
	ready := meta.FindStatusCondition(c.Object.Status.Conditions, v1.ConditionReady)
	if ready == nil || ready.Reason != waitingForVolume {
		return nil
	}
	return awaitVolume(c, volume)
}

// awaitVolume reports the progress of a volume that was applied again, and waits until it is bound.
func awaitVolume(c *einmal.Change[v1.EphemeralVolumeClaim], volume *corev1.PersistentVolumeClaim) error {
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
