package apiserver

import (
	"fmt"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

const priorityClasses = "priorityclasses." + schedulingv1.GroupName

// admitPod refuses a pod whose account or priority class is missing, and gives it its priority. Pods without an account get
// the default one if namespaces have it.
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
	return w.prioritize(pod)
}

// prioritize sets the priority of a pod.
func (w *write) prioritize(pod *unstructured.Unstructured) error {
	name, _, _ := unstructured.NestedString(pod.Object, "spec", "priorityClassName")
	value, policy := map[string]int64{"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}[name], "PreemptLowerPriority"
	class := w.priorityClass(name)
	switch {
	case class != nil:
		name = class.GetName()
		value, _, _ = unstructured.NestedInt64(class.Object, "value")
		policy, _, _ = unstructured.NestedString(class.Object, "preemptionPolicy")
		_ = unstructured.SetNestedField(pod.Object, name, "spec", "priorityClassName")
	case name != "" && value == 0:
		return apierrors.NewForbidden(w.kind.GroupResource(), pod.GetName(), fmt.Errorf("no PriorityClass with name %s was found", name))
	}
	asked, given, _ := unstructured.NestedInt64(pod.Object, "spec", "priority")
	if given && asked != value {
		return apierrors.NewForbidden(w.kind.GroupResource(), pod.GetName(), fmt.Errorf("the integer value of priority (%d) must not be provided "+
			"in pod spec; priority admission controller computed %d from the given PriorityClass name", asked, value))
	}
	preemption, given, _ := unstructured.NestedString(pod.Object, "spec", "preemptionPolicy")
	if given && preemption != policy {
		return apierrors.NewForbidden(w.kind.GroupResource(), pod.GetName(), fmt.Errorf("the string value of PreemptionPolicy (%s) must not be provided "+
			"in pod spec; priority admission controller computed %s from the given PriorityClass name", preemption, policy))
	}
	_ = unstructured.SetNestedField(pod.Object, value, "spec", "priority")
	return unstructured.SetNestedField(pod.Object, policy, "spec", "preemptionPolicy")
}

// priorityClass returns the class of that name, or the default one if there is no name.
func (w *write) priorityClass(name string) *unstructured.Unstructured {
	if name != "" {
		return w.tx.Get(store.Key{Resource: priorityClasses, Name: name})
	}
	for _, class := range w.tx.List(priorityClasses, "") {
		if isDefault, _, _ := unstructured.NestedBool(class.Object, "globalDefault"); isDefault {
			return class
		}
	}
	return nil
}
