package kind

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// refuse adds a problem if there is one.
func refuse(when bool, problem *field.Error) field.ErrorList { //nolint:revive // It keeps lists of checks readable.
	if when {
		return field.ErrorList{problem}
	}
	return nil
}

func validateClaim(object, old *corev1.PersistentVolumeClaim) field.ErrorList {
	spec := field.NewPath("spec")
	if old == nil {
		request, has := object.Spec.Resources.Requests[corev1.ResourceStorage]
		storage := spec.Child("resources").Key("storage")
		refused := refuse(len(object.Spec.AccessModes) == 0, field.Required(spec.Child("accessModes"), "at least 1 access mode is required"))
		refused = append(refused, refuse(!has, field.Required(storage, ""))...)
		return append(refused, refuse(has && request.Sign() <= 0, field.Invalid(storage, request.String(), "must be greater than zero"))...)
	}
	compared := object.Spec.DeepCopy()
	if old.Spec.VolumeName == "" {
		compared.VolumeName = ""
	}
	if old.Status.Phase == corev1.ClaimBound {
		compared.Resources.Requests = old.Spec.Resources.Requests
		compared.VolumeAttributesClassName = old.Spec.VolumeAttributesClassName
	}
	if !equality.Semantic.DeepEqual(*compared, old.Spec) {
		return field.ErrorList{field.Forbidden(spec,
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims")}
	}
	is, was := object.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	return refuse(is.Cmp(was) < 0, field.Forbidden(spec.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
}

func validateContainers(containers []corev1.Container, path *field.Path) field.ErrorList {
	refused := refuse(len(containers) == 0, field.Required(path, ""))
	for i, container := range containers {
		at := path.Index(i)
		refused = append(refused, refuse(container.Name == "", field.Required(at.Child("name"), ""))...)
		refused = append(refused, refuse(container.Image == "", field.Required(at.Child("image"), ""))...)
	}
	return refused
}

func validatePod(object, old *corev1.Pod) field.ErrorList {
	if old == nil {
		return validateContainers(object.Spec.Containers, field.NewPath("spec", "containers"))
	}
	compared := object.Spec.DeepCopy()
	for i := range compared.Containers {
		if i < len(old.Spec.Containers) {
			compared.Containers[i].Image = old.Spec.Containers[i].Image
		}
	}
	compared.Tolerations, compared.ActiveDeadlineSeconds = old.Spec.Tolerations, old.Spec.ActiveDeadlineSeconds
	if old.Spec.NodeName == "" {
		compared.NodeName = ""
	}
	return refuse(!equality.Semantic.DeepEqual(*compared, old.Spec), field.Forbidden(field.NewPath("spec"),
		"pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"+
			"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
			"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
}

func validateService(object, old *corev1.Service) field.ErrorList {
	headless := object.Spec.ClusterIP == corev1.ClusterIPNone || object.Spec.Type == corev1.ServiceTypeExternalName
	refused := refuse(len(object.Spec.Ports) == 0 && !headless, field.Required(field.NewPath("spec", "ports"), ""))
	if old != nil && old.Spec.Type == object.Spec.Type && old.Spec.ClusterIP != "" && old.Spec.ClusterIP != object.Spec.ClusterIP {
		refused = append(refused, field.Invalid(field.NewPath("spec", "clusterIPs").Index(0), object.Spec.ClusterIP, "may not change once set"))
	}
	return refused
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

// validateTemplate checks what a workload makes pods from.
func validateTemplate(selector *metav1.LabelSelector, template corev1.PodTemplateSpec) field.ErrorList {
	spec := field.NewPath("spec")
	if selector == nil {
		refused := field.ErrorList{field.Required(spec.Child("selector"), "")}
		refused = append(refused, field.Invalid(spec.Child("template", "metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
		return append(refused, validateContainers(template.Spec.Containers, spec.Child("template", "spec", "containers"))...)
	}
	matches, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return field.ErrorList{field.Invalid(spec.Child("selector"), selector, "invalid label selector")}
	}
	refused := refuse(!matches.Empty() && !matches.Matches(labels.Set(template.Labels)),
		field.Invalid(spec.Child("template", "metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
	return append(refused, validateContainers(template.Spec.Containers, spec.Child("template", "spec", "containers"))...)
}

func validateDeployment(object, old *appsv1.Deployment) field.ErrorList {
	refused := validateTemplate(object.Spec.Selector, object.Spec.Template)
	if old != nil {
		refused = append(refused, metavalidation.ValidateImmutableField(object.Spec.Selector, old.Spec.Selector, field.NewPath("spec", "selector"))...)
	}
	return refused
}

func validateStatefulSet(object, old *appsv1.StatefulSet) field.ErrorList {
	refused := validateTemplate(object.Spec.Selector, object.Spec.Template)
	if old == nil {
		return refused
	}
	compared := object.Spec.DeepCopy()
	compared.Replicas, compared.Ordinals, compared.Template = old.Spec.Replicas, old.Spec.Ordinals, old.Spec.Template
	compared.UpdateStrategy, compared.RevisionHistoryLimit = old.Spec.UpdateStrategy, old.Spec.RevisionHistoryLimit
	compared.PersistentVolumeClaimRetentionPolicy = old.Spec.PersistentVolumeClaimRetentionPolicy
	compared.MinReadySeconds = old.Spec.MinReadySeconds
	return append(refused, refuse(!equality.Semantic.DeepEqual(*compared, old.Spec), field.Forbidden(field.NewPath("spec"), fmt.Sprint(
		"updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', ",
		"'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")))...)
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
