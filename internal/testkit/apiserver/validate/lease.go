package validate

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Lease checks a Lease.
func Lease(object, _ *coordinationv1.Lease) field.ErrorList {
	spec := field.NewPath("spec")
	duration := object.Spec.LeaseDurationSeconds
	refused := optionalAtLeast0(spec.Child("leaseTransitions"), object.Spec.LeaseTransitions)
	return append(refused, when(duration != nil && *duration <= 0, field.Invalid(spec.Child("leaseDurationSeconds"), duration, greaterThan0))...)
}

// Finalizers checks that finalizers of built-in kinds are standard ones or have a domain.
func Finalizers(finalizers []string) field.ErrorList {
	var refused field.ErrorList
	path := field.NewPath("metadata", "finalizers")
	for _, finalizer := range finalizers {
		switch finalizer {
		case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
			continue
		}
		if !strings.Contains(finalizer, "/") {
			refused = append(refused, field.Invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return refused
}
