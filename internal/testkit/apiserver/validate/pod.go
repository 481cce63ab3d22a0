package validate

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Pod checks a pod; of an existing one little may change.
func Pod(object, old *corev1.Pod) field.ErrorList {
	spec := field.NewPath("spec")
	if old == nil {
		return podSpec(spec, &object.Spec)
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
	return append(podSpec(spec, &object.Spec), when(!equality.Semantic.DeepEqual(*compared, old.Spec), field.Forbidden(spec,
		"pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"+
			"`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
			"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))...)
}

// podSpec checks the fields of a pod that podFields lists.
func podSpec(at *field.Path, spec *corev1.PodSpec) field.ErrorList {
	refused := join(
		volumes(at.Child("volumes"), spec.Volumes),
		containers(at, spec),
		oneOf(at.Child("restartPolicy"), spec.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure),
		oneOf(at.Child("dnsPolicy"), spec.DNSPolicy, corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet, corev1.DNSDefault, corev1.DNSNone),
		when(spec.DNSPolicy == corev1.DNSNone && spec.DNSConfig == nil, field.Required(at.Child("dnsConfig"), "must provide `dnsConfig` when `dnsPolicy` is None")),
		metav1validation.ValidateLabels(spec.NodeSelector, at.Child("nodeSelector")),
		podSecurityContext(at.Child("securityContext"), spec.SecurityContext),
		optionalName(at.Child("serviceAccountName"), spec.ServiceAccountName, subdomain),
		optionalName(at.Child("nodeName"), spec.NodeName, subdomain),
		optionalName(at.Child("hostname"), spec.Hostname, validation.IsDNS1123Label),
		optionalName(at.Child("subdomain"), spec.Subdomain, validation.IsDNS1123Label),
	)
	for i, container := range spec.InitContainers {
		refused = append(refused, optionalOneOf(at.Child("initContainers").Index(i).Child("restartPolicy"), container.RestartPolicy,
			corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)...)
	}
	return refused
}

func volumes(at *field.Path, list []corev1.Volume) field.ErrorList {
	var refused field.ErrorList
	names := unique{}
	for i := range list {
		one, here := &list[i], at.Index(i)
		refused = append(refused, named(here.Child("name"), one.Name, validation.IsDNS1123Label)...)
		refused = append(refused, names.add(here.Child("name"), one.Name, one.Name)...)
		refused = append(refused, volumeSource(here, &one.VolumeSource)...)
	}
	return refused
}

// volumeSource checks the sources that are listed as checked, of which there may be one.
func volumeSource(at *field.Path, source *corev1.VolumeSource) field.ErrorList {
	var refused field.ErrorList
	sources := 0
	if dir := source.EmptyDir; dir != nil {
		sources++
		refused = append(refused, when(dir.SizeLimit != nil && dir.SizeLimit.Sign() < 0,
			field.Forbidden(at.Child("emptyDir", "sizeLimit"), "SizeLimit field must be a valid resource quantity"))...)
	}
	one := func(name string, check func(*field.Path) field.ErrorList) {
		if sources++; sources > 1 {
			refused = append(refused, field.Forbidden(at.Child(name), exclusive))
			return
		}
		refused = append(refused, check(at.Child(name))...)
	}
	if from := source.Secret; from != nil {
		one("secret", func(here *field.Path) field.ErrorList {
			return join(required(here.Child("secretName"), from.SecretName), fileMode(here.Child("defaultMode"), from.DefaultMode), items(here.Child("items"), from.Items))
		})
	}
	if from := source.PersistentVolumeClaim; from != nil {
		one("persistentVolumeClaim", func(here *field.Path) field.ErrorList { return required(here.Child("claimName"), from.ClaimName) })
	}
	if from := source.ConfigMap; from != nil {
		one("configMap", func(here *field.Path) field.ErrorList {
			return join(required(here.Child("name"), from.Name), fileMode(here.Child("defaultMode"), from.DefaultMode), items(here.Child("items"), from.Items))
		})
	}
	return refused
}

func fileMode(at *field.Path, mode *int32) field.ErrorList {
	return when(mode != nil && (*mode < 0 || *mode > 0o777), field.Invalid(at, mode, "must be a number between 0 and 0777 (octal), both inclusive"))
}

// items checks the files that are made of keys.
func items(at *field.Path, list []corev1.KeyToPath) field.ErrorList {
	var refused field.ErrorList
	for i, item := range list {
		here := at.Index(i)
		refused = append(refused, required(here.Child("key"), item.Key)...)
		refused = append(refused, required(here.Child("path"), item.Path)...)
		refused = append(refused, descending(here.Child("path"), item.Path)...)
		refused = append(refused, fileMode(here.Child("mode"), item.Mode)...)
	}
	return refused
}

// descending checks a path that must stay below its volume.
func descending(at *field.Path, text string) field.ErrorList {
	return join(
		when(path.IsAbs(text), field.Invalid(at, text, "must be a relative path")),
		when(slices.Contains(strings.Split(text, "/"), ".."), field.Invalid(at, text, "must not contain '..'")),
	)
}

// volumeNames are the names that containers can mount.
func volumeNames(spec *corev1.PodSpec) map[string]bool {
	names := map[string]bool{}
	for _, volume := range spec.Volumes {
		names[volume.Name] = true
	}
	return names
}

// template checks what a workload makes pods from.
func template(at *field.Path, of *corev1.PodTemplateSpec) field.ErrorList {
	return join(
		metav1validation.ValidateLabels(of.Labels, at.Child("labels")),
		metavalidation.ValidateAnnotations(of.Annotations, at.Child("annotations")),
		podSpec(at.Child("spec"), &of.Spec),
	)
}
