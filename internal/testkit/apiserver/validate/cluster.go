package validate

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
