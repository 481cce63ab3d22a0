package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	volume := volumeFor(c.Object)
	if err := c.Apply(ctx, volume); err != nil {
		reportRefusal(c.Object, err)
		return err
	}
	c.Object.Status.PVCName = volume.Name
	if !reportProgress(c.Object, volume) {
		return einmal.RequeueAfter(patience(c.Object, time.Now()))
	}
	return nil
}

// relabelVolume applies the current labels of the claim to the volume. Apply copies them.
func relabelVolume(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) error {
	return c.Apply(ctx, volumeFor(c.Object))
}

// volumeFor returns the volume of a claim. Apply adds the namespace, the labels and the owner reference.
func volumeFor(claim *v1.EphemeralVolumeClaim) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      claim.Spec.AccessModes,
			StorageClassName: claim.Spec.StorageClassName,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Size},
			},
		},
	}
}
