package main

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

// lifeOfClaims is what users do with claims: they ask for volumes, let one grow and get a label, and delete another.
func lifeOfClaims(w *einmaltest.World) {
	w.Start(func(*einmaltest.Process) *einmal.Operator { return operator() })
	provideVolumes(w)
	made := func(name string) *v1.EphemeralVolumeClaim {
		return &v1.EphemeralVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       v1.EphemeralVolumeClaimSpec{Size: resource.MustParse("1G")},
		}
	}
	kept, deleted := made("kept"), made("deleted")
	w.Create(kept, deleted)
	w.Advance(10 * time.Minute)
	w.Patch(kept, `{"spec":{"size":"2G"}}`)
	w.Patch(kept, `{"metadata":{"labels":{"team":"blue"}}}`)
	w.Advance(10 * time.Minute)
	w.Delete(deleted)
	w.Advance(10 * time.Minute)
	w.Get(kept)
	w.Outcome("the claim that is kept", fmt.Sprintf("%s %s", kept.Status.Phase, kept.Status.Capacity))
	w.Outcome("the claim that is deleted is there", w.Get(deleted))
}

// provideVolumes plays the provisioner of volumes: what a claim asks for is there after a while.
func provideVolumes(w *einmaltest.World) {
	w.React(&corev1.PersistentVolumeClaimList{}, func(object client.Object) {
		volume, is := object.(*corev1.PersistentVolumeClaim)
		asked := volume.Spec.Resources.Requests[corev1.ResourceStorage]
		given := volume.Status.Capacity[corev1.ResourceStorage]
		if !is || volume.Status.Phase == corev1.ClaimBound && given.Cmp(asked) == 0 {
			return
		}
		<-time.After(time.Second)
		volume.Status.Phase = corev1.ClaimBound
		volume.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: asked}
		if err := w.Client().Status().Update(w.Context(), volume); err != nil {
			w.Logf("the volume %s has changed meanwhile: %v", volume.Name, err)
		}
	})
}

// Principle 9, for the whole operator: whatever goes wrong, alone or in pairs, each claim has its volume in the end.
func TestWhateverGoesWrongClaimsHaveTheirVolumes(t *testing.T) {
	einmaltest.Explore(t, lifeOfClaims, einmaltest.Schedules(schedules), einmaltest.NoSpareRights())
}
