package validate

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// serviceRange is where the addresses of Services are.
const serviceRange = "10.96.0.0/16"

// The ports of nodes that Services can have.
const (
	FirstNodePort = 30000
	LastNodePort  = 32767
)

// Service checks a Service.
func Service(object, old *corev1.Service) field.ErrorList {
	at, spec := field.NewPath("spec"), &object.Spec
	headless := spec.ClusterIP == corev1.ClusterIPNone
	refused := join(
		when(len(spec.Ports) == 0 && !headless && spec.Type != corev1.ServiceTypeExternalName, field.Required(at.Child("ports"), "")),
		when(headless && nodePorts(spec), field.Invalid(at.Child("clusterIPs").Index(0), corev1.ClusterIPNone,
			fmt.Sprintf("may not be set to 'None' for %s services", spec.Type))),
		servicePorts(at.Child("ports"), spec),
		metav1validation.ValidateLabels(spec.Selector, at.Child("selector")),
		clusterIPs(at, spec),
	)
	if old != nil && old.Spec.ClusterIP != spec.ClusterIP {
		refused = append(refused, field.Invalid(at.Child("clusterIPs").Index(0), spec.ClusterIP, "may not change once set"))
	}
	return refused
}

// nodePorts reports whether a Service has ports on nodes.
func nodePorts(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer
}

func servicePorts(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	var refused field.ErrorList
	names, numbers, onNodes := unique{}, unique{}, unique{}
	for i, port := range spec.Ports {
		here := at.Index(i)
		switch {
		case port.Name != "":
			refused = append(refused, invalid(here.Child("name"), port.Name, validation.IsDNS1123Label(port.Name)...)...)
			refused = append(refused, names.add(here.Child("name"), port.Name, port.Name)...)
		case len(spec.Ports) > 1:
			refused = append(refused, field.Required(here.Child("name"), ""))
		}
		refused = append(refused, portNumber(here.Child("port"), port.Port)...)
		refused = append(refused, oneOf(here.Child("protocol"), port.Protocol, protocols()...)...)
		refused = append(refused, portOrName(here.Child("targetPort"), port.TargetPort)...)
		if port.AppProtocol != nil {
			refused = append(refused, invalid(here.Child("appProtocol"), *port.AppProtocol, validation.IsQualifiedName(*port.AppProtocol)...)...)
		}
		refused = append(refused, numbers.add(here, corev1.ServicePort{Protocol: port.Protocol, Port: port.Port}, fmt.Sprint(port.Protocol, port.Port))...)
		if port.NodePort != 0 {
			refused = append(refused, nodePort(here.Child("nodePort"), spec, port.NodePort)...)
			refused = append(refused, onNodes.add(here.Child("nodePort"), port.NodePort, fmt.Sprint(port.Protocol, port.NodePort))...)
		}
	}
	return refused
}

func nodePort(at *field.Path, spec *corev1.ServiceSpec, port int32) field.ErrorList {
	outside := port < FirstNodePort || port > LastNodePort
	return join(
		when(spec.Type == corev1.ServiceTypeClusterIP, field.Forbidden(at, "may not be used when `type` is 'ClusterIP'")),
		when(nodePorts(spec) && outside, field.Invalid(at, port,
			fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", FirstNodePort, LastNodePort))),
	)
}

// clusterIPs checks addresses that a client may have chosen. There is one for each Service.
func clusterIPs(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	here := at.Child("clusterIPs")
	if len(spec.ClusterIPs) > 0 && spec.ClusterIPs[0] != spec.ClusterIP {
		return field.ErrorList{field.Invalid(here, spec.ClusterIPs, "first value must match `clusterIP`")}
	}
	if spec.ClusterIP == "" || spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	address, err := netip.ParseAddr(spec.ClusterIP)
	if err != nil {
		return invalid(here.Index(0), spec.ClusterIP, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
	}
	within, err := netip.ParsePrefix(serviceRange)
	if err != nil || within.Contains(address) {
		return nil
	}
	return invalid(here, spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %s: the provided network does not match the current range", address))
}
