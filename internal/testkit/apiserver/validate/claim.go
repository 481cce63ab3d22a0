package validate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Claim checks a PersistentVolumeClaim; of an existing one little may change.
func Claim(object, old *corev1.PersistentVolumeClaim) field.ErrorList {
	spec := field.NewPath("spec")
	if old == nil {
		return claimSpec(spec, &object.Spec)
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
	return when(is.Cmp(was) < 0, field.Forbidden(spec.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
}

func claimSpec(at *field.Path, spec *corev1.PersistentVolumeClaimSpec) field.ErrorList {
	request, has := spec.Resources.Requests[corev1.ResourceStorage]
	storage := at.Child("resources").Key("storage")
	refused := join(
		accessModes(at.Child("accessModes"), spec.AccessModes),
		labelSelector(at.Child("selector"), spec.Selector),
		when(!has, field.Required(storage, "")),
		when(has && request.Sign() <= 0, field.Invalid(storage, request.String(), greaterThan0)),
		optionalOneOf(at.Child("volumeMode"), spec.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem),
	)
	if class := spec.StorageClassName; class != nil {
		refused = append(refused, optionalName(at.Child("storageClassName"), *class, subdomain)...)
	}
	return refused
}

func accessModes(at *field.Path, modes []corev1.PersistentVolumeAccessMode) field.ErrorList {
	refused := when(len(modes) == 0, field.Required(at, "at least 1 access mode is required"))
	single := false
	for _, mode := range modes {
		refused = append(refused, oneOf(at, mode, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod)...)
		single = single || mode == corev1.ReadWriteOncePod
	}
	return append(refused, when(single && len(modes) > 1, field.Forbidden(at, "may not use ReadWriteOncePod with other access modes"))...)
}

// StorageClass checks the provisioner of a StorageClass, which cannot be changed.
func StorageClass(object, old *storagev1.StorageClass) field.ErrorList {
	at, name := field.NewPath("provisioner"), func(name string) []string { return validation.IsQualifiedName(strings.ToLower(name)) }
	refused := named(at, object.Provisioner, name)
	return append(refused, when(old != nil && old.Provisioner != object.Provisioner, field.Invalid(at, object.Provisioner, "field is immutable"))...)
}

// StorageClassFields are the fields of a StorageClass that are checked.
func StorageClassFields() []string {
	return []string{"provisioner", "reclaimPolicy=Delete", "volumeBindingMode=Immediate", "allowVolumeExpansion"}
}
