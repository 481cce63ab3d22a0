package volume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"
)

const (
	// The volume controller of Kubernetes requests a volume with this annotation.
	provisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
	// The scheduler sets this annotation on a claim that waits for its first
	// consumer.
	selectedNodeAnnotation  = "volume.kubernetes.io/selected-node"
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"
)

func (c *controller) syncClaim(ctx context.Context, namespace, name string) error {
	claim, err := c.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case claim.DeletionTimestamp != nil:
		return nil
	case claim.Status.Phase == corev1.ClaimBound:
		return c.expand(ctx, claim)
	case claim.Spec.VolumeName == "" && claim.Annotations[provisionerAnnotation] == Provisioner:
		return c.provision(ctx, claim)
	default:
		return nil
	}
}

// provision creates the volume of a claim. The name of the volume is derived from
// the claim's UID, so that a retry does not create a second volume.
func (c *controller) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Spec.StorageClassName == nil {
		return nil
	}
	class, err := c.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return err
	}
	if waitsForPod(class) && claim.Annotations[selectedNodeAnnotation] == "" {
		return nil
	}
	name := "pvc-" + string(claim.UID)
	if _, err := c.volumes.Get(name); err == nil {
		return nil
	}
	if reason := c.unsupported(claim); reason != "" {
		c.events.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", reason)
		return nil
	}
	c.events.Eventf(claim, corev1.EventTypeNormal, "Provisioning",
		"%s is provisioning a volume for claim %s/%s", Provisioner, claim.Namespace, claim.Name)
	volume, err := c.newVolume(name, claim, class)
	if err != nil {
		c.events.Eventf(claim, corev1.EventTypeWarning, "ProvisioningFailed", "%v", err)
		return err
	}
	_, err = c.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		c.events.Eventf(claim, corev1.EventTypeWarning, "ProvisioningFailed",
			"failed to provision volume %s: %v", name, err)
		return err
	}
	c.events.Eventf(claim, corev1.EventTypeNormal, "ProvisioningSucceeded",
		"Successfully provisioned volume %s", name)
	return nil
}

func waitsForPod(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil &&
		*class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// unsupported returns why no volume can be provisioned for a claim, or "".
func (c *controller) unsupported(claim *corev1.PersistentVolumeClaim) string {
	switch {
	case claim.Spec.Selector != nil:
		return Provisioner + " does not support claims with a selector"
	case claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil:
		return Provisioner + " does not support claims with a dataSource: it cannot copy data"
	case c.directory != "" && claim.Spec.VolumeMode != nil && *claim.Spec.VolumeMode == corev1.PersistentVolumeBlock:
		return Provisioner + " does not support the volumeMode Block on a real node: use Filesystem"
	default:
		return ""
	}
}

func (c *controller) newVolume(name string, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (*corev1.PersistentVolume, error) {
	ref, err := reference.GetReference(scheme.Scheme, claim)
	if err != nil {
		return nil, fmt.Errorf("create reference to claim: %w", err)
	}
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	at, err := c.place(name, claim.Spec.Resources.Requests[corev1.ResourceStorage])
	if err != nil {
		return nil, fmt.Errorf("create the volume: %w", err)
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{provisionedByAnnotation: Provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: at.capacity},
			PersistentVolumeSource:        at.source,
			NodeAffinity:                  at.affinity,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			ClaimRef:                      ref,
			PersistentVolumeReclaimPolicy: reclaim,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
		},
	}, nil
}

// syncVolume deletes a released volume and its data if it is ours and its reclaim
// policy is Delete.
func (c *controller) syncVolume(ctx context.Context, name string) error {
	volume, err := c.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !ours(volume) || volume.DeletionTimestamp != nil ||
		volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	if err := c.remove(volume); err != nil {
		c.events.Eventf(volume, corev1.EventTypeWarning, "VolumeFailedDelete", "%v", err)
		return err
	}
	err = c.client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(volume.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		c.events.Eventf(volume, corev1.EventTypeWarning, "VolumeFailedDelete", "%v", err)
		return err
	}
	return nil
}

// ours reports whether this provisioner created the volume.
func ours(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[provisionedByAnnotation] == Provisioner
}
