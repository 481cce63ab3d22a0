package volume

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// expand expands the volume of a bound claim to the requested size: first the
// capacity of the volume, then the capacity in the claim's status.
func (c *controller) expand(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	requested := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if actual := claim.Status.Capacity[corev1.ResourceStorage]; requested.Cmp(actual) <= 0 {
		return nil
	}
	volume, err := c.volumes.Get(claim.Spec.VolumeName)
	if apierrors.IsNotFound(err) || err == nil && !ours(volume) {
		return nil
	}
	if err != nil {
		return err
	}
	if capacity := volume.Spec.Capacity[corev1.ResourceStorage]; capacity.Cmp(requested) < 0 {
		if claim, err = c.announce(ctx, claim, volume.Name); err != nil {
			return err
		}
		if err := c.grow(volume, requested); err != nil {
			return c.resizeFailed(claim, err)
		}
		volume = volume.DeepCopy()
		volume.Spec.Capacity[corev1.ResourceStorage] = requested
		_, err = c.client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{})
		if err != nil {
			return c.resizeFailed(claim, err)
		}
	}
	return c.finish(ctx, claim, requested)
}

// announce adds a condition and an event about the expansion to the claim.
func (c *controller) announce(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume string) (*corev1.PersistentVolumeClaim, error) {
	if slices.ContainsFunc(claim.Status.Conditions, isResizing) {
		return claim, nil
	}
	claim = claim.DeepCopy()
	claim.Status.Conditions = append(claim.Status.Conditions, corev1.PersistentVolumeClaimCondition{
		Type:               corev1.PersistentVolumeClaimResizing,
		Status:             corev1.ConditionTrue,
		LastTransitionTime: metav1.Now(),
	})
	updated, err := c.updateStatus(ctx, claim)
	if err != nil {
		return nil, c.resizeFailed(claim, err)
	}
	c.events.Eventf(updated, corev1.EventTypeNormal, "Resizing", "%s is resizing volume %s", Provisioner, volume)
	return updated, nil
}

// finish sets the new capacity in the claim's status and removes the conditions and
// allocations of the expansion.
func (c *controller) finish(ctx context.Context, claim *corev1.PersistentVolumeClaim, capacity resource.Quantity) error {
	claim = claim.DeepCopy()
	if claim.Status.Capacity == nil {
		claim.Status.Capacity = corev1.ResourceList{}
	}
	claim.Status.Capacity[corev1.ResourceStorage] = capacity
	claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, isResizing)
	delete(claim.Status.AllocatedResourceStatuses, corev1.ResourceStorage)
	delete(claim.Status.AllocatedResources, corev1.ResourceStorage)
	if _, err := c.updateStatus(ctx, claim); err != nil {
		return c.resizeFailed(claim, err)
	}
	c.events.Eventf(claim, corev1.EventTypeNormal, "VolumeResizeSuccessful",
		"Resized volume %s to %s", claim.Spec.VolumeName, capacity.String())
	return nil
}

func (c *controller) updateStatus(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	return c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
}

// resizeFailed emits an event for an error, except for conflicts, which the next
// attempt resolves.
func (c *controller) resizeFailed(claim *corev1.PersistentVolumeClaim, err error) error {
	if !apierrors.IsConflict(err) {
		c.events.Eventf(claim, corev1.EventTypeWarning, "VolumeResizeFailed", "%v", err)
	}
	return fmt.Errorf("resize volume: %w", err)
}

func isResizing(condition corev1.PersistentVolumeClaimCondition) bool {
	switch condition.Type {
	case corev1.PersistentVolumeClaimResizing,
		corev1.PersistentVolumeClaimFileSystemResizePending,
		corev1.PersistentVolumeClaimControllerResizeError,
		corev1.PersistentVolumeClaimNodeResizeError:
		return true
	default:
		return false
	}
}
