package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

// lifeOfClaims is what users do with claims: they ask for volumes, let one grow and get a label, and delete another.
func lifeOfClaims(w *einmaltest.World) {
	w.Start(func(*einmaltest.Process) *einmal.Operator { return operator() })
	provideVolumes(w, time.Second)
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

// lifeOfTemporaryClaims is what users do with claims for certain pods: one is used only by a pod that it is not for,
// the other by two pods, one after the other.
func lifeOfTemporaryClaims(w *einmaltest.World) {
	w.Start(func(*einmaltest.Process) *einmal.Operator { return operator() })
	provideVolumes(w, 100*time.Millisecond)
	for _, name := range []string{"borrowed", "used"} {
		claim := temporaryClaim()
		claim.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: name}
		claim.Spec.GracePeriod.Duration, claim.Spec.ExpiryPeriod.Duration = 20*time.Minute, 40*time.Minute
		w.Create(claim)
	}
	borrower, first, second := podOn("borrowed", "borrower", "shell", ""), podOn("used", "first", "report", ""), podOn("used", "second", "report", "")
	w.Create(&borrower, &first)
	inPhase(w, corev1.PodRunning, &borrower, &first)
	w.Advance(10 * time.Minute)
	w.Delete(&first)
	w.Advance(10 * time.Minute)
	w.Create(&second)
	w.Advance(30 * time.Minute)
	checkUse(w, map[string]string{"borrowed": usedByOthers, "used": inUse})
	inPhase(w, corev1.PodSucceeded, &second)
	w.Delete(&borrower)
	w.Advance(10 * time.Minute)
	checkUse(w, map[string]string{"used": noLongerUsed})
	w.Advance(30 * time.Minute)
	checkUse(w, map[string]string{})
}

// inPhase plays the kubelet, which patches the status. An update would be a conflict after a restored cluster, where resource versions are lower.
func inPhase(w *einmaltest.World, phase corev1.PodPhase, pods ...*corev1.Pod) {
	for _, pod := range pods {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase))
		if err := w.Client().Status().Patch(w.Context(), pod, patch); err != nil {
			w.Fatalf("the pod %s is to be %s: %v", pod.Name, phase, err)
		}
	}
}

// checkUse expects that there are these claims and no others, and that each says so of its use. Each has its volume.
func checkUse(w *einmaltest.World, want map[string]string) {
	w.Helper()
	var claims v1.EphemeralVolumeClaimList
	var volumes corev1.PersistentVolumeClaimList
	if err := errors.Join(w.Client().List(w.Context(), &claims), w.Client().List(w.Context(), &volumes)); err != nil {
		w.Fatal(err)
	}
	told := map[string]string{}
	for _, claim := range claims.Items {
		told[claim.Name] = ""
		if used := meta.FindStatusCondition(claim.Status.Conditions, v1.ConditionUsed); used != nil {
			told[claim.Name] = used.Reason
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		w.Errorf("claims and their use (-want +got):\n%s", diff)
	}
	if len(volumes.Items) != len(told) {
		w.Errorf("there are %d volumes for %d claims", len(volumes.Items), len(told))
	}
}

// provideVolumes plays the provisioner of volumes: what a claim asks for is there after a while.
func provideVolumes(w *einmaltest.World, while time.Duration) {
	w.React(&corev1.PersistentVolumeClaimList{}, func(object client.Object) {
		volume, is := object.(*corev1.PersistentVolumeClaim)
		asked := volume.Spec.Resources.Requests[corev1.ResourceStorage]
		given := volume.Status.Capacity[corev1.ResourceStorage]
		if !is || volume.Status.Phase == corev1.ClaimBound && given.Cmp(asked) == 0 {
			return
		}
		<-time.After(while)
		volume.Status.Phase = corev1.ClaimBound
		volume.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: asked}
		if err := w.Client().Status().Update(w.Context(), volume); err != nil {
			w.Logf("the volume %s has changed meanwhile: %v", volume.Name, err)
		}
	})
}

// Principle 9, for the whole operator: whatever goes wrong, alone or in pairs, each claim has its volume in the end.
func TestWhateverGoesWrongClaimsHaveTheirVolumes(t *testing.T) {
	einmaltest.Explore(t, lifeOfClaims, einmaltest.Schedules(schedules))
}

// So it is with claims for certain pods: none is deleted while a pod uses it, and the others are in the end. Every single fault is
// played; the pairs are left to the other life.
func TestWhateverGoesWrongClaimsAreDeletedWhenTheyAreNotUsed(t *testing.T) {
	einmaltest.Explore(t, lifeOfTemporaryClaims, einmaltest.Schedules(0), einmaltest.NoSpareRights())
}

// A PersistentVolumeClaim that a user deletes comes back, and one that a user relabels gets its labels back. Both wait for nothing but the watch.
func TestAVolumeThatIsDeletedOrRelabelledIsRepaired(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator { return operator() })
		provideVolumes(w, 100*time.Millisecond)
		claim := &v1.EphemeralVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "my-claim", Labels: map[string]string{"team": "blue"}},
			Spec:       v1.EphemeralVolumeClaimSpec{Size: resource.MustParse("1G")},
		}
		w.Create(claim)
		w.Advance(time.Minute)
		volume := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "my-claim"}}
		w.Get(volume)
		first := volume.UID
		w.Delete(volume)
		w.Advance(10 * time.Second)
		if !w.Get(volume) || volume.UID == first || volume.Status.Phase != corev1.ClaimBound {
			w.Errorf("the volume was not replaced: %s, %+v", volume.UID, volume.Status)
		}
		w.Patch(volume, `{"metadata":{"labels":{"team":"red"}}}`)
		w.Advance(10 * time.Second)
		if w.Get(volume); volume.Labels["team"] != "blue" {
			w.Errorf("the labels of the volume are %v", volume.Labels)
		}
		if w.Get(claim); claim.Status.Phase != v1.Bound || !meta.IsStatusConditionTrue(claim.Status.Conditions, v1.ConditionReady) {
			w.Errorf("the claim is not ready: %+v", claim.Status)
		}
	})
}

// A volume gets no label by which a tool tracks its claim: the tool could delete the volume. One that an earlier release has copied leaves it in one
// write.
func TestAVolumeLosesTheTrackingLabelsOfItsClaim(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		start := func() { w.Start(func(*einmaltest.Process) *einmal.Operator { return operator() }) }
		start()
		provideVolumes(w, 100*time.Millisecond)
		claim := sized("1Gi")
		volume := &corev1.PersistentVolumeClaim{ObjectMeta: claim.ObjectMeta}
		claim.Labels["app.kubernetes.io/instance"] = "shop"
		w.Create(claim)
		w.Advance(time.Minute)
		expect := func(want map[string]string) {
			w.Helper()
			w.Get(volume)
			if diff := cmp.Diff(want, volume.Labels); diff != "" {
				w.Errorf("labels of the volume (-want +got):\n%s", diff)
			}
		}
		expect(map[string]string{"team": "blue"})

		w.Stop()
		earlier := volumeFor(claim, claim.Spec.Size)
		earlier.Namespace, earlier.Labels, earlier.OwnerReferences = volume.Namespace, claim.Labels, volume.OwnerReferences
		earlier.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
		body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(earlier)
		if err != nil {
			w.Fatal(err)
		}
		delete(body, "status")
		applied := client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: body})
		if err := w.Client().Apply(w.Context(), applied, client.FieldOwner(identity+"/apply")); err != nil {
			w.Fatal(err)
		}
		expect(claim.Labels)
		for _, want := range [][]string{{"apply persistentvolumeclaims default/my-claim by repair-pvc"}, {}} {
			before := len(w.Writes())
			start()
			w.Advance(time.Minute)
			expect(map[string]string{"team": "blue"})
			if diff := cmp.Diff(want, w.Writes()[before:], cmpopts.EquateEmpty()); diff != "" {
				w.Errorf("writes after a start (-want +got):\n%s", diff)
			}
			w.Stop()
		}
		start()
	})
}

// sized is a claim of a size, with a label.
func sized(size string) *v1.EphemeralVolumeClaim {
	return &v1.EphemeralVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "my-claim", Labels: map[string]string{"team": "blue"}},
		Spec:       v1.EphemeralVolumeClaimSpec{Size: resource.MustParse(size)},
	}
}

// readyAs returns the reason and the message of the condition Ready.
func readyAs(w *einmaltest.World, claim *v1.EphemeralVolumeClaim) string {
	w.Get(claim)
	ready := meta.FindStatusCondition(claim.Status.Conditions, v1.ConditionReady)
	if ready == nil {
		return ""
	}
	return ready.Reason + ": " + ready.Message
}

// A volume that another client has grown is fine. The operator requests no less than that, so labels arrive, and so does a size below it.
func TestAVolumeThatAnotherClientHasGrownIsFine(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator { return operator() })
		provideVolumes(w, 100*time.Millisecond)
		claim := sized("1Gi")
		volume := &corev1.PersistentVolumeClaim{ObjectMeta: claim.ObjectMeta}
		w.Create(claim)
		w.Advance(time.Minute)
		w.Patch(volume, `{"spec":{"resources":{"requests":{"storage":"5Gi"}}}}`)
		w.Advance(time.Minute)
		if got, want := readyAs(w, claim), "VolumeBound: there is a volume of 5Gi, more than spec.size asks for, which is 1Gi"; got != want || claim.Status.Capacity.String() != "5Gi" {
			w.Errorf("Ready is %q, want %q; the capacity is %s", got, want, claim.Status.Capacity)
		}
		w.Patch(claim, `{"metadata":{"labels":{"team":"red"}}}`)
		w.Advance(time.Minute)
		if w.Get(volume); volume.Labels["team"] != "red" {
			w.Errorf("the labels of the volume are %v", volume.Labels)
		}
		w.Patch(claim, `{"spec":{"size":"2Gi"}}`)
		w.Advance(time.Minute)
		if got, want := readyAs(w, claim), "VolumeBound: there is a volume of 5Gi, more than spec.size asks for, which is 2Gi"; got != want {
			w.Errorf("Ready is %q, want %q", got, want)
		}
		w.Patch(volume, `{"metadata":{"labels":{"team":"green"}}}`)
		w.Advance(time.Minute)
		if w.Get(volume); volume.Labels["team"] != "red" || volume.Spec.Resources.Requests.Storage().String() != "5Gi" {
			w.Errorf("the labels of the volume are %v, and it requests %s", volume.Labels, volume.Spec.Resources.Requests.Storage())
		}
	})
}

// The API server lets no claim grow that has no volume yet. Its labels arrive anyway, and the size does when there is a volume.
func TestALabelArrivesAlthoughTheSizeIsRefused(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator { return operator() })
		claim := sized("1Gi")
		volume := &corev1.PersistentVolumeClaim{ObjectMeta: claim.ObjectMeta}
		w.Create(claim)
		w.Advance(time.Minute)
		w.Patch(claim, `{"spec":{"size":"2Gi"},"metadata":{"labels":{"team":"red"}}}`)
		w.Advance(time.Minute)
		if w.Get(volume); volume.Labels["team"] != "red" || volume.Spec.Resources.Requests.Storage().String() != "1Gi" {
			w.Errorf("the labels of the volume are %v, and it requests %s", volume.Labels, volume.Spec.Resources.Requests.Storage())
		}
		const refusal = "VolumeRefused: apply PersistentVolumeClaim default/my-claim: "
		const field = "; the request changes spec.resources.requests.storage"
		if got := readyAs(w, claim); !strings.HasPrefix(got, refusal) || !strings.HasSuffix(got, field) {
			w.Errorf("Ready is %q, want %q and %q", got, refusal, field)
		}
		provideVolumes(w, 100*time.Millisecond)
		w.Advance(10 * time.Minute)
		if got, want := readyAs(w, claim), "VolumeBound: there is a volume of 2Gi"; got != want {
			w.Errorf("Ready is %q, want %q", got, want)
		}
	})
}

// Each change of a claim's usage is one write of the status, and nothing is written in between.
func TestTheUseOfAClaimCostsOneWriteForEachChange(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator { return operator() })
		provideVolumes(w, 100*time.Millisecond)
		claim, pod := temporaryClaim(), podOn("my-claim", "report-1", "report", "")
		claim.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "my-claim"}
		w.Create(claim)
		w.Advance(time.Hour)
		before := len(w.Writes())
		w.Create(&pod)
		w.Advance(time.Hour)
		inPhase(w, corev1.PodRunning, &pod)
		w.Advance(time.Hour)
		inPhase(w, corev1.PodSucceeded, &pod)
		w.Advance(30 * time.Minute)
		w.Patch(claim, `{"spec":{"gracePeriod":"45m"}}`) // It takes effect at once.
		w.Advance(15*time.Minute + time.Second)
		if w.Get(claim) {
			w.Errorf("the claim is still there, after the grace period that it has now: %+v", claim.Status)
		}
		const status, events = "patch ephemeralvolumeclaims.volumeclaim.einmal.dev default/my-claim status", "events"
		var writes []string
		for _, write := range w.Writes()[before:] {
			if !strings.Contains(write, events) {
				writes = append(writes, write)
			}
		}
		want := []string{status, status, status, "delete ephemeralvolumeclaims.volumeclaim.einmal.dev default/my-claim by delete-unused"}
		if diff := cmp.Diff(want, writes); diff != "" {
			w.Errorf("writes (-want +got):\n%s", diff)
		}
	})
}

func TestAClaimIsKeptWhenItIsForNoCertainPodsAnyMore(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator { return operator() })
		provideVolumes(w, 100*time.Millisecond)
		claim := temporaryClaim()
		claim.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "my-claim"}
		w.Create(claim)
		w.Advance(time.Hour)
		checkUse(w, map[string]string{"my-claim": neverUsed})
		w.Patch(claim, `{"spec":{"podSelector":null,"gracePeriod":null,"expiryPeriod":null}}`)
		w.Advance(2 * day)
		checkUse(w, map[string]string{"my-claim": ""})
		if w.Get(claim); claim.Status.Expires != nil {
			w.Errorf("it expires at %s", claim.Status.Expires)
		}
	})
}

// A namespace is restored from a backup: the claim gets a new uid, and its volume has no owner. The status has the command by which the claim takes it back. The
// volume is not made again.
func TestARestoredClaimTakesBackItsVolume(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.Start(func(*einmaltest.Process) *einmal.Operator { return operator() })
		provideVolumes(w, time.Second)
		claim := &v1.EphemeralVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}, Spec: v1.EphemeralVolumeClaimSpec{Size: resource.MustParse("1G")}}
		volume := &corev1.PersistentVolumeClaim{ObjectMeta: claim.ObjectMeta}
		w.Create(claim)
		w.Advance(time.Minute)
		w.Stop()
		w.RestoreFromBackup(volume, claim)
		restored := volume.UID
		w.Restart()
		w.Advance(time.Minute)
		w.Get(claim)
		said := meta.FindStatusCondition(claim.Status.Conditions, v1.ConditionReady).Message
		_, command, _ := strings.Cut(said, "kubectl annotate --overwrite --namespace default ephemeralvolumeclaims."+v1.GroupVersion.Group+" one ")
		annotation, uid, is := strings.Cut(command, "=")
		if !is {
			w.Fatalf("the status has no command: %s", said)
		}
		w.Patch(claim, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, annotation, uid))
		w.Advance(10 * time.Minute) // At the next attempt.
		if w.Get(volume); volume.UID != restored || !metav1.IsControlledBy(volume, claim) {
			w.Errorf("the volume %s was restored, and there is %s with the owners %v", restored, volume.UID, volume.OwnerReferences)
		}
	})
}
