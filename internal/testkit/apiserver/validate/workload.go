package validate

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Deployment checks a Deployment.
func Deployment(object, old *appsv1.Deployment) field.ErrorList {
	at, spec := field.NewPath("spec"), &object.Spec
	refused := join(
		optionalAtLeast0(at.Child("replicas"), spec.Replicas),
		atLeast0(at.Child("minReadySeconds"), int64(spec.MinReadySeconds)),
		optionalAtLeast0(at.Child("revisionHistoryLimit"), spec.RevisionHistoryLimit),
		optionalAtLeast0(at.Child("progressDeadlineSeconds"), spec.ProgressDeadlineSeconds),
		deploymentStrategy(at.Child("strategy"), &spec.Strategy),
		selecting(at, spec.Selector, &spec.Template, "deployment"),
	)
	if deadline := spec.ProgressDeadlineSeconds; deadline != nil {
		refused = append(refused, when(*deadline <= spec.MinReadySeconds,
			field.Invalid(at.Child("progressDeadlineSeconds"), *deadline, "must be greater than minReadySeconds"))...)
	}
	if old != nil {
		refused = append(refused, metavalidation.ValidateImmutableField(spec.Selector, old.Spec.Selector, at.Child("selector"))...)
	}
	return refused
}

func deploymentStrategy(at *field.Path, strategy *appsv1.DeploymentStrategy) field.ErrorList {
	rolling := at.Child("rollingUpdate")
	switch update := strategy.RollingUpdate; {
	case strategy.Type == appsv1.RecreateDeploymentStrategyType:
		return when(update != nil, field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'"))
	case strategy.Type != appsv1.RollingUpdateDeploymentStrategyType:
		return field.ErrorList{field.NotSupported(at, strategy, []string{"Recreate", "RollingUpdate"})}
	default:
		return join(
			numberOrPercent(rolling.Child("maxUnavailable"), update.MaxUnavailable),
			atMost100Percent(rolling.Child("maxUnavailable"), update.MaxUnavailable),
			numberOrPercent(rolling.Child("maxSurge"), update.MaxSurge),
			when(isZero(update.MaxUnavailable) && isZero(update.MaxSurge),
				field.Invalid(rolling.Child("maxUnavailable"), update.MaxUnavailable, "may not be 0 when `maxSurge` is 0")),
		)
	}
}

// selecting checks the template of a workload whose pods always run, and that its selector matches them.
func selecting(at *field.Path, selector *metav1.LabelSelector, of *corev1.PodTemplateSpec, workload string) field.ErrorList {
	inTemplate := at.Child("template")
	refused := join(
		template(inTemplate, of),
		when(of.Spec.RestartPolicy != corev1.RestartPolicyAlways,
			field.NotSupported(inTemplate.Child("spec", "restartPolicy"), of.Spec.RestartPolicy, []corev1.RestartPolicy{corev1.RestartPolicyAlways})),
	)
	mismatch := field.Invalid(inTemplate.Child("metadata", "labels"), of.Labels, "`selector` does not match template `labels`")
	here := at.Child("selector")
	if selector == nil {
		return append(refused, field.Required(here, ""), mismatch)
	}
	refused = append(refused, labelSelector(here, selector)...)
	matches, err := metav1.LabelSelectorAsSelector(selector)
	switch {
	case err != nil:
		return append(refused, field.Invalid(here, selector, "invalid label selector"))
	case matches.Empty():
		return append(refused, field.Invalid(here, selector, "empty selector is invalid for "+workload))
	}
	return append(refused, when(!matches.Matches(labels.Set(of.Labels)), mismatch)...)
}

// StatefulSet checks a StatefulSet; of an existing one little may change.
func StatefulSet(object, old *appsv1.StatefulSet) field.ErrorList {
	at, spec := field.NewPath("spec"), &object.Spec
	mounting := withClaims(spec)
	refused := join(
		optionalAtLeast0(at.Child("replicas"), spec.Replicas),
		atLeast0(at.Child("minReadySeconds"), int64(spec.MinReadySeconds)),
		statefulStrategy(at, spec),
		selecting(at, spec.Selector, mounting, "statefulset"),
	)
	if old == nil {
		refused = append(refused, optionalName(at.Child("serviceName"), spec.ServiceName, validation.IsDNS1123Label)...)
		for i := range spec.VolumeClaimTemplates {
			refused = append(refused, claimSpec(at.Child("volumeClaimTemplates").Index(i).Child("spec"), &spec.VolumeClaimTemplates[i].Spec)...)
		}
		return refused
	}
	compared := spec.DeepCopy()
	compared.Replicas, compared.Ordinals, compared.Template = old.Spec.Replicas, old.Spec.Ordinals, old.Spec.Template
	compared.UpdateStrategy, compared.RevisionHistoryLimit = old.Spec.UpdateStrategy, old.Spec.RevisionHistoryLimit
	compared.PersistentVolumeClaimRetentionPolicy = old.Spec.PersistentVolumeClaimRetentionPolicy
	compared.MinReadySeconds = old.Spec.MinReadySeconds
	return append(refused, when(!equality.Semantic.DeepEqual(*compared, old.Spec), field.Forbidden(at, fmt.Sprint(
		"updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', ",
		"'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")))...)
}

func statefulStrategy(at *field.Path, spec *appsv1.StatefulSetSpec) field.ErrorList {
	strategy, update := at.Child("updateStrategy"), spec.UpdateStrategy
	onDelete := update.Type == appsv1.OnDeleteStatefulSetStrategyType
	ordered, parallel := appsv1.OrderedReadyPodManagement, appsv1.ParallelPodManagement
	refused := join(
		when(spec.PodManagementPolicy != ordered && spec.PodManagementPolicy != parallel,
			field.Invalid(at.Child("podManagementPolicy"), spec.PodManagementPolicy, "must be 'OrderedReady' or 'Parallel'")),
		when(!onDelete && update.Type != appsv1.RollingUpdateStatefulSetStrategyType,
			field.Invalid(strategy, update, "must be 'RollingUpdate' or 'OnDelete'")),
		when(onDelete && update.RollingUpdate != nil,
			field.Invalid(strategy.Child("rollingUpdate"), update.RollingUpdate, "only allowed for updateStrategy 'RollingUpdate'")),
	)
	if rolling := update.RollingUpdate; rolling != nil {
		refused = append(refused, optionalAtLeast0(strategy.Child("rollingUpdate", "partition"), rolling.Partition)...)
	}
	if policy := spec.PersistentVolumeClaimRetentionPolicy; policy != nil {
		here := at.Child("persistentVolumeClaimRetentionPolicy")
		kept, deleted := appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType
		refused = append(refused, oneOf(here.Child("whenDeleted"), policy.WhenDeleted, kept, deleted)...)
		refused = append(refused, oneOf(here.Child("whenScaled"), policy.WhenScaled, kept, deleted)...)
	}
	return refused
}

// withClaims is the template of a StatefulSet with a volume for each claim that it makes.
func withClaims(spec *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	if len(spec.VolumeClaimTemplates) == 0 {
		return &spec.Template
	}
	changed := spec.Template.DeepCopy()
	own := changed.Spec.Volumes
	changed.Spec.Volumes = nil
	claimed := map[string]bool{}
	for _, claim := range spec.VolumeClaimTemplates {
		if claimed[claim.Name] {
			continue // A real server accepts two of one name.
		}
		claimed[claim.Name] = true
		changed.Spec.Volumes = append(changed.Spec.Volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}})
	}
	for _, volume := range own {
		if !claimed[volume.Name] {
			changed.Spec.Volumes = append(changed.Spec.Volumes, volume)
		}
	}
	return changed
}
