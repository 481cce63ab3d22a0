package rbac

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/einmal-operators/einmal/internal/crd"
	"github.com/einmal-operators/einmal/internal/declaration"
)

// resource returns what is known of a kind.
func (o Operator) resource(gvk schema.GroupVersionKind, goType reflect.Type) crd.Resource {
	if known, found := o.Defined[gvk.GroupKind()]; found {
		return known
	}
	return guess(gvk, goType)
}

func placeOf(known crd.Resource) declaration.Where {
	if known.ClusterWide {
		return declaration.ClusterWide
	}
	return declaration.InNamespaces
}

// guess returns what is true for the built-in kinds, and probably for others.
func guess(gvk schema.GroupVersionKind, goType reflect.Type) crd.Resource {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	hasStatus := true
	if goType.Kind() == reflect.Struct && goType.Name() != "Unstructured" {
		_, hasStatus = goType.FieldByName("Status")
	}
	return crd.Resource{Plural: plural.Resource, HasStatus: hasStatus, ClusterWide: slices.Contains(clusterWide(), gvk.GroupKind().String())}
}

// clusterWide lists the built-in cluster-scoped kinds that operators handle.
func clusterWide() []string {
	return []string{
		"Namespace", "Node", "PersistentVolume", "StorageClass.storage.k8s.io", "VolumeAttachment.storage.k8s.io",
		"ClusterRole.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io",
		"CustomResourceDefinition.apiextensions.k8s.io", "PriorityClass.scheduling.k8s.io", "IngressClass.networking.k8s.io",
		"RuntimeClass.node.k8s.io", "CertificateSigningRequest.certificates.k8s.io",
	}
}
