package apiserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// In a real cluster the kubelet of the node removes the pod.
func TestAPodOnANodeIsRemovedWhenItsGracePeriodEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := start(t)
		defer server.Close()
		api := clientOf(t, server)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
			Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main", Image: "example.org/app:1"}}},
		}
		create(t, api, pod)
		if err := api.Delete(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		<-time.After(29 * time.Second)
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || *pod.DeletionGracePeriodSeconds != 30 {
			t.Errorf("after 29 seconds the pod is %v, %v", pod, err)
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
			t.Errorf("after 31 seconds the pod is %v, %v", pod, err)
		}
	})
}
