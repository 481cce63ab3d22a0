package kind

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/einmal-operators/einmal/internal/testkit/apiserver/validate"
)

// allocate gives a Service what the server chooses: addresses and ports of nodes. No field manager owns them. An update
// that leaves them out keeps them.
func allocate(object, old *unstructured.Unstructured) {
	service, err := decodeAs[corev1.Service](object)
	if err != nil {
		return // Validate reports it.
	}
	before := &corev1.Service{}
	if old != nil {
		if before, err = decodeAs[corev1.Service](old); err != nil {
			return
		}
	}
	name := object.GetNamespace() + "/" + object.GetName()
	allocateAddresses(&service.Spec, &before.Spec, name)
	allocatePorts(&service.Spec, &before.Spec, name)
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&service.Spec)
	if err != nil {
		return
	}
	object.Object = maps.Clone(object.Object)
	object.Object["spec"] = spec
}

func allocateAddresses(spec, old *corev1.ServiceSpec, name string) {
	if spec.ClusterIP == "" && len(spec.ClusterIPs) > 0 && len(old.ClusterIPs) == 0 {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
	set(&spec.ClusterIP, old.ClusterIP)
	number := hashed(name)
	set(&spec.ClusterIP, fmt.Sprintf("10.96.%d.%d", number>>8&0xff, number&0xff))
	if len(spec.ClusterIPs) == 0 {
		spec.ClusterIPs = []string{spec.ClusterIP}
	}
	point(&spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
}

func allocatePorts(spec, old *corev1.ServiceSpec, name string) {
	wanted := spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer
	for i := range spec.Ports {
		port := &spec.Ports[i]
		var was int32
		for _, other := range old.Ports {
			if other.Port == port.Port && other.Protocol == port.Protocol {
				was = other.NodePort
			}
		}
		switch {
		case wanted:
			set(&port.NodePort, was)
			set(&port.NodePort, freePort(spec.Ports, portOf(fmt.Sprint(name, port.Protocol, port.Port))))
		case spec.Type == corev1.ServiceTypeClusterIP && old.Type != spec.Type && port.NodePort == was:
			port.NodePort = 0
		}
	}
}

// freePort returns a port of nodes, or the next one that no port of the Service has.
func freePort(ports []corev1.ServicePort, wanted int32) int32 {
	for slices.ContainsFunc(ports, func(port corev1.ServicePort) bool { return port.NodePort == wanted }) {
		if wanted++; wanted > validate.LastNodePort {
			wanted = validate.FirstNodePort
		}
	}
	return wanted
}

// portOf chooses a port of nodes. Two Services rarely get the same one.
func portOf(name string) int32 {
	return validate.FirstNodePort + int32(hashed(name)%(validate.LastNodePort-validate.FirstNodePort+1))
}

func hashed(name string) uint32 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name))
	return sum.Sum32()
}
