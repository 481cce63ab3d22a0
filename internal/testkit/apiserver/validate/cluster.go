package validate

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxDriverName is the longest name of a driver of volumes.
const maxDriverName = 63

// Ingress checks an Ingress.
func Ingress(object, _ *networkingv1.Ingress) field.ErrorList {
	at, spec := field.NewPath("spec"), &object.Spec
	refused := when(len(spec.Rules) == 0 && spec.DefaultBackend == nil, field.Invalid(at, spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	if spec.DefaultBackend != nil {
		refused = append(refused, backend(at.Child("defaultBackend"), spec.DefaultBackend)...)
	}
	if spec.IngressClassName != nil {
		refused = append(refused, invalid(at.Child("ingressClassName"), *spec.IngressClassName, subdomain(*spec.IngressClassName)...)...)
	}
	for i, rule := range spec.Rules {
		here := at.Child("rules").Index(i)
		refused = append(refused, host(here.Child("host"), rule.Host)...)
		if rule.HTTP == nil {
			continue
		}
		list := here.Child("http", "paths")
		refused = append(refused, when(len(rule.HTTP.Paths) == 0, field.Required(list, ""))...)
		for j := range rule.HTTP.Paths {
			refused = append(refused, ingressPath(list.Index(j), &rule.HTTP.Paths[j])...)
		}
	}
	for i, tls := range spec.TLS {
		here := at.Child("tls").Index(i)
		for j, name := range tls.Hosts {
			refused = append(refused, hostName(here.Child("hosts").Index(j), name)...)
		}
		refused = append(refused, optionalName(here.Child("secretName"), tls.SecretName, subdomain)...)
	}
	return refused
}

func host(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return nil
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return field.ErrorList{field.Invalid(at, name, "must be a DNS name, not an IP address")}
	}
	return hostName(at, name)
}

// hostName checks a host that may begin with a wildcard. An IP address has the form of one.
func hostName(at *field.Path, name string) field.ErrorList {
	if strings.Contains(name, "*") {
		return invalid(at, name, validation.IsWildcardDNS1123Subdomain(name)...)
	}
	return invalid(at, name, validation.IsDNS1123Subdomain(name)...)
}

func ingressPath(at *field.Path, of *networkingv1.HTTPIngressPath) field.ErrorList {
	if of.PathType == nil {
		return field.ErrorList{field.Required(at.Child("pathType"), "pathType must be specified")}
	}
	optional := *of.PathType == networkingv1.PathTypeImplementationSpecific && of.Path == ""
	refused := join(
		oneOf(at.Child("pathType"), *of.PathType, networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix),
		when(!optional && !strings.HasPrefix(of.Path, "/"), field.Invalid(at.Child("path"), of.Path, "must be an absolute path")),
		backend(at.Child("backend"), &of.Backend),
	)
	if *of.PathType == networkingv1.PathTypeImplementationSpecific {
		return refused
	}
	for _, sequence := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		refused = append(refused, when(strings.Contains(of.Path, sequence), field.Invalid(at.Child("path"), of.Path, "must not contain '"+sequence+"'"))...)
	}
	return refused
}

func backend(at *field.Path, of *networkingv1.IngressBackend) field.ErrorList {
	if of.Service == nil {
		return when(of.Resource == nil, field.Invalid(at, "", "resource or service backend is required"))
	}
	label := func(name string) []string { return metavalidation.NameIsDNSLabel(name, false) }
	refused := named(at.Child("service", "name"), of.Service.Name, label)
	port, here := of.Service.Port, at.Child("service", "port")
	switch {
	case port.Name != "" && port.Number != 0:
		return append(refused, field.Invalid(at, "", "cannot set both port name & port number"))
	case port.Name != "":
		return append(refused, invalid(here.Child("name"), port.Name, validation.IsValidPortName(port.Name)...)...)
	case port.Number != 0:
		return append(refused, portNumber(here.Child("number"), port.Number)...)
	}
	return append(refused, field.Required(at, "port name or number is required"))
}

// IngressFields are the fields of an Ingress that are checked.
func IngressFields() []string {
	return below("spec", []string{
		"ingressClassName", "defaultBackend.service", "tls", "rules.host", "rules.http.paths.path", "rules.http.paths.pathType", "rules.http.paths.backend.service",
	})
}

// Volume checks a PersistentVolume, whose source cannot be changed.
func Volume(object, old *corev1.PersistentVolume) field.ErrorList {
	at, spec := field.NewPath("spec"), &object.Spec
	storage, has := spec.Capacity[corev1.ResourceStorage]
	none := corev1.PersistentVolumeSource{}
	refused := join(
		accessModes(at.Child("accessModes"), spec.AccessModes),
		when(!has || len(spec.Capacity) > 1, field.NotSupported(at.Child("capacity"), spec.Capacity, []corev1.ResourceName{corev1.ResourceStorage})),
		when(has && storage.Sign() <= 0, field.Invalid(at.Child("capacity").Key("storage"), storage.String(), greaterThan0)),
		oneOf(at.Child("persistentVolumeReclaimPolicy"), spec.PersistentVolumeReclaimPolicy,
			corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle, corev1.PersistentVolumeReclaimRetain),
		optionalName(at.Child("storageClassName"), spec.StorageClassName, subdomain),
		optionalOneOf(at.Child("volumeMode"), spec.VolumeMode, corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem),
		when(spec.PersistentVolumeSource == none, field.Required(at, "must specify a volume type")),
	)
	if spec.HostPath != nil {
		refused = append(refused, hostPath(at.Child("hostPath"), spec.HostPath)...)
	}
	if spec.CSI != nil {
		refused = append(refused, driver(at.Child("csi", "driver"), spec.CSI.Driver)...)
		refused = append(refused, required(at.Child("csi", "volumeHandle"), spec.CSI.VolumeHandle)...)
	}
	if old == nil {
		return refused
	}
	return append(refused, when(!equality.Semantic.DeepEqual(spec.PersistentVolumeSource, old.Spec.PersistentVolumeSource),
		field.Forbidden(at.Child("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation"))...)
}

func hostPath(at *field.Path, of *corev1.HostPathVolumeSource) field.ErrorList {
	if of.Path == "" {
		return field.ErrorList{field.Required(at.Child("path"), "")}
	}
	return join(
		when(slices.Contains(strings.Split(of.Path, "/"), ".."), field.Invalid(at.Child("path"), of.Path, "must not contain '..'")),
		optionalOneOf(at.Child("type"), of.Type, corev1.HostPathUnset, corev1.HostPathBlockDev, corev1.HostPathCharDev, corev1.HostPathDirectory,
			corev1.HostPathDirectoryOrCreate, corev1.HostPathFile, corev1.HostPathFileOrCreate, corev1.HostPathSocket),
	)
}

// driver checks the name of a driver of volumes.
func driver(at *field.Path, name string) field.ErrorList {
	caseless := func(name string) []string { return subdomain(strings.ToLower(name)) }
	return append(named(at, name, caseless), when(len(name) > maxDriverName, field.TooLong(at, "", maxDriverName))...)
}

// VolumeFields are the fields of a PersistentVolume that are checked.
func VolumeFields() []string {
	return below("spec", []string{
		"accessModes", "capacity", "persistentVolumeReclaimPolicy", "storageClassName", "volumeMode", "claimRef",
		"hostPath.path", "hostPath.type", "csi.driver", "csi.volumeHandle",
	})
}

// StorageClass checks a StorageClass; of an existing one little may change.
func StorageClass(object, old *storagev1.StorageClass) field.ErrorList {
	reclaim, binding, parameters := field.NewPath("reclaimPolicy"), field.NewPath("volumeBindingMode"), field.NewPath("parameters")
	_, unnamed := object.Parameters[""]
	provisioner := func(name string) []string { return validation.IsQualifiedName(strings.ToLower(name)) }
	refused := join(
		named(field.NewPath("provisioner"), object.Provisioner, provisioner),
		when(unnamed, field.Invalid(parameters, "", "field can not be empty.")),
		optionalOneOf(reclaim, object.ReclaimPolicy, "", corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain),
		optionalOneOf(binding, object.VolumeBindingMode, storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer),
	)
	if old == nil {
		return refused
	}
	return join(refused,
		metavalidation.ValidateImmutableField(object.Parameters, old.Parameters, parameters),
		metavalidation.ValidateImmutableField(object.Provisioner, old.Provisioner, field.NewPath("provisioner")),
		metavalidation.ValidateImmutableField(object.ReclaimPolicy, old.ReclaimPolicy, reclaim),
		metavalidation.ValidateImmutableField(object.VolumeBindingMode, old.VolumeBindingMode, binding),
	)
}

// PriorityClass checks a PriorityClass, whose value cannot be changed.
func PriorityClass(object, old *schedulingv1.PriorityClass) field.ErrorList {
	const highest = 1000000000
	system := strings.HasPrefix(object.Name, "system-")
	refused := join(
		when(object.Value > highest && !system, field.Forbidden(field.NewPath("value"), "maximum allowed value of a user defined priority is 1000000000")),
		when(old != nil && old.Value != object.Value, field.Forbidden(field.NewPath("value"), "may not be changed in an update.")),
		optionalOneOf(field.NewPath("preemptionPolicy"), object.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever),
	)
	if old != nil {
		refused = append(refused, metavalidation.ValidateImmutableField(object.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
	}
	return append(refused, when(old == nil && system, field.Forbidden(field.NewPath("metadata", "name"),
		"priority class names with 'system-' prefix are reserved for system use only"))...)
}
