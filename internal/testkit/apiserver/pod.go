package apiserver

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// claimFinalizer keeps a claim that a pod on a node uses.
const claimFinalizer = kind.ClaimFinalizer

// grace is how many seconds an object that is being deleted is given.
func grace(object *unstructured.Unstructured) int64 {
	if seconds := object.GetDeletionGracePeriodSeconds(); seconds != nil {
		return *seconds
	}
	return 0
}

// stop does what the kubelet does when a pod has ended: it removes the pod.
func (w *write) stop(key store.Key) error {
	now := int64(0)
	_, _, err := w.delete(key, &metav1.DeleteOptions{GracePeriodSeconds: &now})
	return err
}

// claimsOf are the claims that a pod uses.
func claimsOf(key store.Key, pod *unstructured.Unstructured) []store.Key {
	if key.Resource != pods {
		return nil
	}
	var used []store.Key
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	for _, volume := range volumes {
		described, _ := volume.(map[string]any)
		if name, found, _ := unstructured.NestedString(described, "persistentVolumeClaim", "claimName"); found {
			used = append(used, store.Key{Resource: claims, Namespace: key.Namespace, Name: name})
		}
	}
	return used
}

// release lets a claim go that is being deleted, when no pod on a node uses it any more.
func (c *collector) release(w *write, key store.Key) error {
	for _, pod := range w.tx.List(pods, key.Namespace) {
		if node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); node == "" {
			continue
		}
		if slices.Contains(claimsOf(store.Key{Resource: pods, Namespace: key.Namespace}, pod), key) {
			return nil
		}
	}
	return c.unblock(w, key, claimFinalizer)
}
