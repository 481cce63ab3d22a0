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

// identity names the operator in its records, its finalizer and the fields that it owns. It never changes.
const identity = "volumeclaims.einmal.dev"

// operator declares what happens when.
func operator() *einmal.Operator {
	op := einmal.New(identity, einmal.Scheme(v1.AddToScheme), einmal.CRDs(crd.YAML),
		einmal.Applies(&corev1.PersistentVolumeClaim{}), einmal.Access(&v1.EphemeralVolumeClaim{}, "delete"))
	claims := einmal.For[v1.EphemeralVolumeClaim](op)
	claims.OnCreate("create-pvc", provideVolume)
	claims.OnUpdate("resize-pvc", provideVolume, einmal.Field("spec.size"))
	claims.OnUpdate("relabel-pvc", relabelVolume, einmal.Field("metadata.labels"))
	claims.OnUpdate("keep", keep, einmal.Field("spec.podSelector", einmal.To(einmal.Absent())))
	claims.Reconcile("repair-pvc", repairVolume, einmal.Owns[corev1.PersistentVolumeClaim]())
	claims.Reconcile("delete-unused", deleteUnused, einmal.When(temporary), einmal.Watches(usedBy), einmal.Watches(itself))
	return op
}

// provideVolume asks for a volume of the claim's size and is done when there is one. Asking twice is asking once, so the
// same function serves a new claim, one that has grown, and any repetition after a crash.
func provideVolume(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) error {
	volume := volumeFor(c.Object)
	if err := c.Apply(ctx, volume); err != nil {
		reportRefusal(c.Object, err)
		return err
	}
	c.Object.Status.PVCName = volume.Name
	if !reportProgress(c.Object, volume) {
		return einmal.RetryAfter(patience(c.Object, time.Now()), nil)
	}
	return nil
}

// relabelVolume gives the volume the labels that the claim has now: Apply copies them.
func relabelVolume(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) error {
	return c.Apply(ctx, volumeFor(c.Object))
}

// volumeFor is the volume that a claim asks for, in full. Apply adds the namespace, the labels and the owner.
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
