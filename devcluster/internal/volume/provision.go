package volume

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"

	"github.com/einmal-operators/einmal/devcluster/internal/realnode"
)

const (
	// The volume controller of Kubernetes requests a volume with this annotation.
	provisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
	// The scheduler sets this annotation on a claim that waits for its first
	// consumer.
	selectedNodeAnnotation  = "volume.kubernetes.io/selected-node"
	provisionedByAnnotation = "pv.kubernetes.io/provisioned-by"

	// pathPrefix is the directory in the host paths of the volumes. It is never
	// created.
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
	if reason := unsupported(claim); reason != "" {
		c.events.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", reason)
		return nil
	}
	volume, err := c.newVolume(name, claim, class)
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

// unsupported returns why no volume can be provisioned for a claim, or "".
func unsupported(claim *corev1.PersistentVolumeClaim) string {
	switch {
	case claim.Spec.Selector != nil:
		return Provisioner + " does not support claims with a selector"
	case claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil:
		return Provisioner + " does not support claims with a dataSource: its volumes are simulated and contain no data"
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
	source, affinity, err := c.place(name)
	if err != nil {
		return nil, err
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{provisionedByAnnotation: Provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			PersistentVolumeSource:        source,
			NodeAffinity:                  affinity,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			ClaimRef:                      ref,
			PersistentVolumeReclaimPolicy: reclaim,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
		},
	}, nil
}

// syncVolume deletes a released volume and its directory if it is ours and its
// reclaim policy is Delete.
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
	if local := volume.Spec.Local; local != nil && local.Path == filepath.Join(c.directory, name) {
		if err := os.RemoveAll(local.Path); err != nil {
			c.events.Eventf(volume, corev1.EventTypeWarning, "VolumeFailedDelete", "%v", err)
			return err
		}
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

// place returns where a volume is, and on which node. On a real node, it creates the
// directory. Every user may write there, because a volume has no owner: the kubelet
// sets the group that a Pod asks for.
func (c *controller) place(name string) (corev1.PersistentVolumeSource, *corev1.VolumeNodeAffinity, error) {
	if c.directory == "" {
		directory := corev1.HostPathUnset
		return corev1.PersistentVolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: path.Join(pathPrefix, name), Type: &directory},
		}, nil, nil
	}
	directory := filepath.Join(c.directory, name)
	err := os.MkdirAll(directory, 0o700)
	if err == nil {
		err = os.Chmod(directory, 0o777) //nolint:gosec // As said above; the directories above it have mode 0700.
	}
	return corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: directory}},
		&corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{realnode.Name},
			}},
		}}}}, err
}
