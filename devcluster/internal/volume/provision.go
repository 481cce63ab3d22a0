package volume

import (
	"context"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"
)

const (
	// The volume controller of Kubernetes asks for a volume by this annotation.
	askedOfAnnotation = "volume.kubernetes.io/storage-provisioner"
	// The scheduler sets this one on a claim that waits for its first consumer.
	selectedNodeAnnotation  = "volume.kubernetes.io/selected-node"
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"

	// pathPrefix is where the volumes claim to be. Nothing is created there.
	pathPrefix = "/devcluster/volumes"
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
	case claim.Spec.VolumeName == "" && claim.Annotations[askedOfAnnotation] == Provisioner:
		return c.provision(ctx, claim)
	default:
		return nil
	}
}

// provision creates the volume of a claim. Its name is made from the claim's
// uid, so that a repetition creates nothing twice.
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
	if reason := unsupported(claim); reason != "" {
		c.events.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", reason)
		return nil
	}
	volume, err := newVolume(name, claim, class)
	if err != nil {
		return err
	}
	c.events.Eventf(claim, corev1.EventTypeNormal, "Provisioning",
		"%s is provisioning a volume for claim %s/%s", Provisioner, claim.Namespace, claim.Name)
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

// unsupported says why a claim cannot be served, or nothing.
func unsupported(claim *corev1.PersistentVolumeClaim) string {
	switch {
	case claim.Spec.Selector != nil:
		return "a volume cannot be provisioned for a claim with a selector"
	case claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil:
		return "volumes of " + Provisioner + " hold no data, so none can be made from a dataSource"
	default:
		return ""
	}
}

func newVolume(name string, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (*corev1.PersistentVolume, error) {
	ref, err := reference.GetReference(scheme.Scheme, claim)
	if err != nil {
		return nil, fmt.Errorf("reference to claim: %w", err)
	}
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	directory := corev1.HostPathUnset
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{provisionedByAnnotation: Provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: path.Join(pathPrefix, name), Type: &directory},
			},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			ClaimRef:                      ref,
			PersistentVolumeReclaimPolicy: reclaim,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
		},
	}, nil
}

// syncVolume deletes a volume of ours that its claim has left.
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
	err = c.client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(volume.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		c.events.Eventf(volume, corev1.EventTypeWarning, "VolumeFailedDelete", "%v", err)
		return err
	}
	return nil
}

func ours(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[provisionedByAnnotation] == Provisioner
}
