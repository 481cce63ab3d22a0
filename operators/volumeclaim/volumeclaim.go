package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
	"github.com/einmal-operators/einmal/operators/volumeclaim/config/crd"
)

// identity names the operator in its records, its finalizer and its field manager. It never changes.
const identity = "volumeclaims.einmal.dev"

// operator returns the operator with all its handlers.
func operator() *einmal.Operator {
	op := einmal.New(identity, einmal.Scheme(v1.AddToScheme), einmal.CRDs(crd.YAML),
		einmal.Applies(&corev1.PersistentVolumeClaim{}), einmal.Permissions(&v1.EphemeralVolumeClaim{}, "delete"))
	claims := einmal.For[v1.EphemeralVolumeClaim](op)
	claims.OnCreate("create-pvc", provideVolume)
	claims.OnUpdate("resize-pvc", provideVolume, einmal.Fields("spec.size"))
	claims.OnUpdate("relabel-pvc", relabelVolume, einmal.Fields("metadata.labels"))
	claims.OnUpdate("keep", keep, einmal.FieldChanges("spec.podSelector", einmal.To(einmal.Absent())))
	claims.Reconcile("repair-pvc", repairVolume, einmal.Owns[corev1.PersistentVolumeClaim]())
	claims.Reconcile("delete-unused", deleteUnused, einmal.When(temporary), einmal.Watches(usedBy), einmal.Watches(itself))
	return op
}

// provideVolume requests a volume of the claim's size and is done when it exists. It is idempotent, so the same function handles a new
// claim, a larger size, and repetitions after a crash.
func provideVolume(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) error {
	volume, refused, err := applyVolume(ctx, c)
	if err := errors.Join(refused, err); err != nil {
		reportRefusal(c.Object, err)
		return err
	}
	c.Object.Status.PVCName = volume.Name
	if !reportProgress(c.Object, volume) {
		return einmal.RequeueAfter(patience(c.Object, time.Now()))
	}
	return nil
}

// applyVolume applies the volume of a claim. It never requests less than the volume already requests, since a volume cannot shrink: another client may
// have grown it. If the API server refuses a larger size, applyVolume applies the rest, and returns the refusal apart from its own error.
func applyVolume(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) (volume *corev1.PersistentVolumeClaim, refused, err error) {
	existing, err := existingVolume(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	volume = volumeFor(c.Object, larger(c.Object.Spec.Size, requested(existing)))
	err = c.Apply(ctx, volume, einmal.CopyLabels("*"))
	if existing == nil || !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		return volume, nil, err
	}
	volume = volumeFor(c.Object, requested(existing))
	return volume, err, c.Apply(ctx, volume, einmal.CopyLabels("*"))
}

// relabelVolume applies the current labels of the claim to the volume. If the API server refuses the size, resize-pvc reports that.
func relabelVolume(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) error {
	_, _, err := applyVolume(ctx, c)
	return err
}

// existingVolume returns the volume of a claim, nil if there is none.
func existingVolume(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) (*corev1.PersistentVolumeClaim, error) {
	volume := &corev1.PersistentVolumeClaim{}
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(c.Object), volume)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // The absence of the volume is not an error.
	case err != nil:
		return nil, fmt.Errorf("read the volume: %w", err)
	default:
		return volume, nil
	}
}

// requested returns the size that a volume requests; 0 if there is no volume.
func requested(volume *corev1.PersistentVolumeClaim) resource.Quantity {
	if volume == nil {
		return resource.Quantity{}
	}
	return volume.Spec.Resources.Requests[corev1.ResourceStorage]
}

func larger(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

// volumeFor returns the volume of a claim that requests a size. Apply adds the namespace, the owner reference and, with CopyLabels, the labels.
func volumeFor(claim *v1.EphemeralVolumeClaim, size resource.Quantity) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      claim.Spec.AccessModes,
			StorageClassName: claim.Spec.StorageClassName,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: size},
			},
		},
	}
}
