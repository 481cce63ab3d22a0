package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/volumeclaim/api/v1"
)

// goesAfterItsLastPod is the life of a claim for certain pods, with pods that run.
func (s *story) goesAfterItsLastPod(t *testing.T) {
	claim := temporaryClaim()
	claim.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "temporary"}
	claim.Spec.GracePeriod.Duration = 3 * time.Second
	unused := claim.DeepCopy()
	unused.Name, unused.Spec.ExpiryPeriod.Duration = "unused", 2*time.Second
	pod := podOn("temporary", "report-1", "report", "")
	for _, err := range []error{s.Create(t.Context(), claim), s.Create(t.Context(), unused), s.Create(t.Context(), &pod)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.awaitUse(t, "temporary", inUse)
	s.awaitGone(t, &v1.EphemeralVolumeClaim{}, "unused")
	s.awaitGone(t, &corev1.PersistentVolumeClaim{}, "unused")
	einmaltest.Eventually(t, "the pod runs", func(ctx context.Context) error {
		err := s.Get(ctx, key(pod.Name), &pod)
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return err
	})
	if err := s.Delete(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	s.awaitUse(t, "temporary", noLongerUsed)
	since := s.claim(t, "temporary").Status.UnusedSince
	s.awaitGone(t, &v1.EphemeralVolumeClaim{}, "temporary")
	if early := 3*time.Second - time.Since(since.Time); early > 0 {
		t.Errorf("the claim was deleted %s too early", early)
	}
	s.awaitGone(t, &corev1.PersistentVolumeClaim{}, "temporary")
	checkStory(t, s.running.Log(), "temporary", `triggeredBy="Pod default/report-1`, "deleted the claim", "the object is gone")
}

func (c *cluster) awaitUse(t *testing.T, name, reason string) {
	t.Helper()
	einmaltest.Eventually(t, "claim "+name+" says "+reason, func(context.Context) error {
		used := meta.FindStatusCondition(c.claim(t, name).Status.Conditions, v1.ConditionUsed)
		if used == nil || used.Reason != reason {
			return fmt.Errorf("condition Used is %+v", used)
		}
		return nil
	})
}

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }
