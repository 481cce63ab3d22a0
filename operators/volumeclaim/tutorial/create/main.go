// Create is the second step of the tutorial: a volume for each new claim.
package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
	"github.com/einmal-operators/einmal/operators/volumeclaim/config/crd"
)

func main() {
	op := einmal.New("volumeclaims.einmal.dev", einmal.Scheme(v1.AddToScheme), einmal.CRDs(crd.YAML),
		einmal.Applies(&corev1.PersistentVolumeClaim{}))
	claims := einmal.For[v1.EphemeralVolumeClaim](op)
	claims.OnCreate("create-pvc", createVolume)
	op.Main()
}

// createVolume asks for a volume and notes its name in the claim's status.
func createVolume(ctx context.Context, c *einmal.Change[v1.EphemeralVolumeClaim]) error {
	volume := volumeFor(c.Object)
	if err := c.Apply(ctx, volume, einmal.CopyLabels("*")); err != nil {
		return err
	}
	c.Object.Status.PVCName = volume.Name
	return nil
}

// volumeFor is the volume that a claim asks for.
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
