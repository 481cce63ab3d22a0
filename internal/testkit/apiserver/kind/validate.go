package kind

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// refuse adds a problem if there is one.
func refuse(when bool, problem *field.Error) field.ErrorList { //nolint:revive // It keeps lists of checks readable.
	if when {
		return field.ErrorList{problem}
	}
	return nil
}

func validateLease(object, _ *coordinationv1.Lease) field.ErrorList {
	spec := field.NewPath("spec")
	duration, transitions := object.Spec.LeaseDurationSeconds, object.Spec.LeaseTransitions
	var refused field.ErrorList
	if duration != nil && *duration <= 0 {
		refused = append(refused, field.Invalid(spec.Child("leaseDurationSeconds"), *duration, "must be greater than 0"))
	}
	if transitions != nil && *transitions < 0 {
		refused = append(refused, field.Invalid(spec.Child("leaseTransitions"), *transitions, "must be greater than or equal to 0"))
	}
	return refused
}

// validateFinalizers checks that finalizers of built-in kinds are standard ones or have a domain.
func validateFinalizers(finalizers []string) field.ErrorList {
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
