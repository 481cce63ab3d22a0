package simulation

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Unchanged is the text of an object that is as it was when the world began, or as the namespace controller makes it.
const Unchanged = "unchanged\n"

// original is an object as it was when the world began.
type original struct {
	version string
	object  unstructured.Unstructured
}

// noteBeginning notes what the world begins with.
func (w *World) noteBeginning() {
	found := w.everything()
	w.beginning = make(map[types.UID]original, len(found))
	for _, one := range found {
		w.beginning[one.GetUID()] = original{version: one.GetResourceVersion(), object: one}
	}
}

// sameContent reports whether two objects hold the same, whatever their versions are and whenever they were made.
func sameContent(one, other unstructured.Unstructured) bool {
	return equality.Semantic.DeepEqual(content(one), content(other))
}

func content(one unstructured.Unstructured) map[string]any {
	body := one.DeepCopy().Object
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink", "generation", "namespace"} {
		unstructured.RemoveNestedField(body, "metadata", field)
	}
	return body
}

// isNamespaceContent reports whether an object is one that the namespace controller makes in each namespace, and as it makes it.
func (w *World) isNamespaceContent(one unstructured.Unstructured) bool {
	kinds := []string{"ConfigMap kube-root-ca.crt", "ServiceAccount default"}
	name := one.GroupVersionKind().GroupKind().String() + " " + one.GetName()
	if !slices.Contains(kinds, name) {
		return false
	}
	for _, before := range w.beginning {
		if before.object.GroupVersionKind() == one.GroupVersionKind() && before.object.GetName() == one.GetName() {
			return sameContent(before.object, one)
		}
	}
	return false
}

// resetVersions lowers all resource versions, as a restore into a new cluster does.
func (w *World) resetVersions() {
	before := w.everything()
	w.Server.ResetVersions()
	after := w.everything()
	same := map[types.UID]bool{}
	for _, one := range before {
		same[one.GetUID()] = w.beginning[one.GetUID()].version == one.GetResourceVersion()
	}
	for _, one := range after {
		if noted, known := w.beginning[one.GetUID()]; known && same[one.GetUID()] {
			noted.version = one.GetResourceVersion()
			w.beginning[one.GetUID()] = noted
		}
	}
}
