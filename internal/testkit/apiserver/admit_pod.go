package apiserver

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// admitPod refuses a pod whose account is missing. Pods without an account get the default one if namespaces have it.
func (w *write) admitPod(pod *unstructured.Unstructured) error {
	account, _, _ := unstructured.NestedString(pod.Object, "spec", "serviceAccountName")
	if account == "" && w.server.furnished {
		account = defaultAccount
		_ = unstructured.SetNestedField(pod.Object, account, "spec", "serviceAccountName")
		_ = unstructured.SetNestedField(pod.Object, account, "spec", "serviceAccount")
	}
	key := store.Key{Resource: accounts, Namespace: pod.GetNamespace(), Name: account}
	if (w.server.furnished || account != defaultAccount) && account != "" && w.tx.Get(key) == nil {
		return apierrors.NewForbidden(w.kind.GroupResource(), pod.GetName(), fmt.Errorf(
			"error looking up service account %s/%s: serviceaccount %q not found", key.Namespace, key.Name, key.Name))
	}
	return nil
}
