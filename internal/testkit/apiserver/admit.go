package apiserver

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/kind"
	"github.com/einmal-operators/einmal/internal/testkit/apiserver/store"
)

// The resources that the server treats specially.
const (
	namespaces  = "namespaces"
	pods        = "pods"
	claims      = "persistentvolumeclaims"
	configMaps  = "configmaps"
	accounts    = "serviceaccounts"
	definitions = "customresourcedefinitions.apiextensions.k8s.io"
)

// admitNew refuses objects whose namespace is missing or going, or whose definition is going.
func (w *write) admitNew(object *unstructured.Unstructured) error {
	if w.kind.Namespaced {
		if err := w.admitInto(object.GetNamespace(), object.GetName()); err != nil {
			return err
		}
	}
	if w.kind.Resource() == pods {
		return w.admitPod(object)
	}
	if !w.kind.Custom() {
		return nil
	}
	definition := w.tx.Get(store.Key{Resource: definitions, Name: w.kind.Resource()})
	if definition != nil && definition.GetDeletionTimestamp() != nil {
		return apierrors.NewForbidden(w.kind.GroupResource(), object.GetName(),
			errors.New("create not allowed while custom resource definition is terminating"))
	}
	return nil
}

func (w *write) admitInto(namespace, name string) error {
	found := w.tx.Get(store.Key{Resource: namespaces, Name: namespace})
	if found == nil {
		return apierrors.NewNotFound(corev1.Resource(namespaces), namespace)
	}
	phase, _, _ := unstructured.NestedString(found.Object, "status", "phase")
	if phase != string(corev1.NamespaceTerminating) {
		return nil
	}
	refused := apierrors.NewForbidden(w.kind.GroupResource(), name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", namespace), Field: "metadata.namespace",
	})
	return refused
}

// written follows up a write that has happened.
func (s *Server) written(tx *store.Tx, key store.Key, object, before *unstructured.Unstructured) error {
	s.collector.noticed(key, object)
	if key.Resource != definitions {
		return nil
	}
	if before != nil && before.GetGeneration() == object.GetGeneration() {
		return nil
	}
	if before != nil {
		s.restamp(tx, key, object)
	}
	return s.installed(tx, object)
}

// restamp notes the stored versions and names of a definition that has changed.
func (s *Server) restamp(tx *store.Tx, key store.Key, object *unstructured.Unstructured) {
	definition, err := kind.Definition(object)
	if err != nil {
		return
	}
	status := definition.Status
	status.StoredVersions = kind.StoredVersions(definition)
	status.AcceptedNames = definition.Spec.Names
	changed := object.DeepCopy()
	kind.SetStatus(changed, status)
	if !equality.Semantic.DeepEqual(changed.Object["status"], object.Object["status"]) {
		tx.Put(key, changed)
	}
}

// deleted follows up a deletion that has happened.
func (s *Server) deleted(tx *store.Tx, key store.Key, last *unstructured.Unstructured) error {
	s.collector.gone(key, last)
	if key.Resource == definitions {
		return s.uninstalled(tx, last)
	}
	return nil
}

// makeNamespace creates one of the namespaces that every cluster has.
func (s *Server) makeNamespace(name string) error {
	k := s.kinds.ofResource(namespaces)
	return s.store.Do(func(tx *store.Tx) error {
		object := k.New()
		object.SetName(name)
		if _, err := k.Shape(object); err != nil {
			return err
		}
		if _, err := (&write{server: s, tx: tx, kind: k, manager: "kube-apiserver"}).create(object); err != nil {
			return err
		}
		return s.furnish(tx, name)
	})
}

// terminating marks a namespace or a definition whose content has to go first.
func terminating(key store.Key, object *unstructured.Unstructured) {
	switch key.Resource {
	case namespaces:
		_ = unstructured.SetNestedField(object.Object, string(corev1.NamespaceTerminating), "status", "phase")
	case definitions:
		definition, err := kind.Definition(object)
		if err != nil {
			return
		}
		definition.Status.Conditions = append(definition.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue,
			LastTransitionTime: *object.GetDeletionTimestamp(),
			Reason:             "InstanceDeletionPending", Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
		})
		kind.SetStatus(object, definition.Status)
	}
}
