package validate

import (
	"fmt"
	"net/netip"
	"strings"

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

// maxAffinity is the longest time that a client of a Service is sent to one pod, in seconds.
const maxAffinity = 86400

// Service checks a Service.
func Service(object, old *corev1.Service) field.ErrorList {
	at, spec := field.NewPath("spec"), &object.Spec
	headless := spec.ClusterIP == corev1.ClusterIPNone
	external := spec.Type == corev1.ServiceTypeExternalName
	refused := join(
		oneOf(at.Child("type"), spec.Type, corev1.ServiceTypeClusterIP, corev1.ServiceTypeExternalName, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeNodePort),
		when(len(spec.Ports) == 0 && !headless && !external, field.Required(at.Child("ports"), "")),
		when(headless && nodePorts(spec), field.Invalid(at.Child("clusterIPs").Index(0), corev1.ClusterIPNone,
			fmt.Sprintf("may not be set to 'None' for %s services", spec.Type))),
		servicePorts(at.Child("ports"), spec),
		metav1validation.ValidateLabels(spec.Selector, at.Child("selector")),
		oneOf(at.Child("sessionAffinity"), spec.SessionAffinity, corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone),
		optionalOneOf(at.Child("internalTrafficPolicy"), spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal),
	)
	if config := spec.SessionAffinityConfig; config != nil && config.ClientIP != nil && config.ClientIP.TimeoutSeconds != nil {
		seconds := *config.ClientIP.TimeoutSeconds
		refused = append(refused, when(seconds <= 0 || seconds > maxAffinity, field.Invalid(
			at.Child("sessionAffinityConfig", "clientIP", "timeoutSeconds"), seconds,
			fmt.Sprintf("must be greater than 0 and less than %d", maxAffinity)))...)
	}
	if external {
		return join(refused, externalName(at, spec), externalTraffic(at, spec))
	}
	refused = append(refused, externalTraffic(at, spec)...)
	refused = append(refused, clusterIPs(at, spec)...)
	refused = append(refused, families(at, spec)...)
	if old != nil && old.Spec.Type == spec.Type && old.Spec.ClusterIP != "" && old.Spec.ClusterIP != spec.ClusterIP {
		refused = append(refused, field.Invalid(at.Child("clusterIPs").Index(0), spec.ClusterIP, "may not change once set"))
	}
	return refused
}

// externalTraffic checks the fields of a Service that clients outside of the cluster reach.
func externalTraffic(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	policy, allocates, health := at.Child("externalTrafficPolicy"), at.Child("allocateLoadBalancerNodePorts"), at.Child("healthCheckNodePort")
	balanced := spec.Type == corev1.ServiceTypeLoadBalancer
	refused := join(
		when(balanced && spec.AllocateLoadBalancerNodePorts == nil, field.Required(allocates, "")),
		when(!balanced && spec.AllocateLoadBalancerNodePorts != nil, field.Forbidden(allocates, "may only be used when `type` is 'LoadBalancer'")),
	)
	switch {
	case nodePorts(spec):
		refused = append(refused, oneOf(policy, spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)...)
	case spec.ExternalTrafficPolicy != "" && len(spec.ExternalIPs) == 0:
		refused = append(refused, field.Invalid(policy, spec.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	}
	if balanced && spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		return append(refused, portNumber(health, spec.HealthCheckNodePort)...)
	}
	return append(refused, when(spec.HealthCheckNodePort != 0, field.Invalid(health, spec.HealthCheckNodePort,
		"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))...)
}

// nodePorts reports whether a Service has ports on nodes.
func nodePorts(spec *corev1.ServiceSpec) bool {
	return spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer
}

// families refuses a second family of addresses, which the range of Services has not.
func families(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	refused := optionalOneOf(at.Child("ipFamilyPolicy"), spec.IPFamilyPolicy,
		corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack)
	withoutPods := spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0
	if spec.IPFamilyPolicy != nil && *spec.IPFamilyPolicy == corev1.IPFamilyPolicyRequireDualStack && !withoutPods {
		refused = append(refused, field.Invalid(at.Child("ipFamilyPolicy"), *spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	known := unique{}
	for i, family := range spec.IPFamilies {
		here := at.Child("ipFamilies").Index(i)
		refused = append(refused, known.add(here, family, string(family))...)
		refused = append(refused, oneOf(here, family, corev1.IPv4Protocol, corev1.IPv6Protocol)...)
		refused = append(refused, when(family == corev1.IPv6Protocol && !withoutPods, field.Invalid(here, family, "not configured on this cluster"))...)
	}
	return refused
}

func externalName(at *field.Path, spec *corev1.ServiceSpec) field.ErrorList {
	name := strings.TrimSuffix(spec.ExternalName, ".")
	return join(
		named(at.Child("externalName"), name, validation.IsDNS1123Subdomain),
		when(len(spec.ClusterIPs) > 0, field.Forbidden(at.Child("clusterIPs"), "may not be set for ExternalName services")),
	)
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
