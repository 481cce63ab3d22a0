package dns

import (
	"math/rand/v2"
	"net"
	"slices"
	"strings"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

// records are the records of the cluster's domain.
type records struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
}

// find returns the records of a name, which is in lower case and ends with the domain, and whether the name exists. A name that exists can have no
// record of a type.
func (r records) find(name string, kind uint16) (found []dns.RR, exists bool) {
	const service, host = 2, 3 // the numbers of labels
	if name == zone || name == "svc."+zone {
		return nil, true
	}
	rest, inServices := strings.CutSuffix(name, ".svc."+zone)
	parts := strings.Split(rest, ".")
	if !inServices || len(parts) < service || len(parts) > host {
		return nil, false
	}
	namespace := parts[len(parts)-1]
	s, err := r.services.Services(namespace).Get(parts[len(parts)-2])
	if err != nil {
		return nil, false
	}
	if len(parts) == host {
		return r.ofHost(name, s, parts[0], kind)
	}
	return r.ofService(name, s, kind), true
}

// ofService returns the addresses of a Service, or its other name.
func (r records) ofService(name string, s *corev1.Service, kind uint16) []dns.RR {
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return []dns.RR{&dns.CNAME{Hdr: header(name, dns.TypeCNAME), Target: dns.Fqdn(s.Spec.ExternalName)}}
	case kind != dns.TypeA:
		return nil
	case s.Spec.ClusterIP != corev1.ClusterIPNone:
		return addresses(name, s.Spec.ClusterIPs)
	}
	var all []string
	for _, e := range r.endpoints(s) {
		all = append(all, e.Addresses...)
	}
	return addresses(name, all)
}

// ofHost returns the addresses of a Pod of a headless Service by its host name, such as a Pod of a StatefulSet has.
func (r records) ofHost(name string, s *corev1.Service, host string, kind uint16) (found []dns.RR, exists bool) {
	if s.Spec.ClusterIP != corev1.ClusterIPNone {
		return nil, false
	}
	var all []string
	for _, e := range r.endpoints(s) {
		if e.Hostname != nil && *e.Hostname == host {
			all = append(all, e.Addresses...)
		}
	}
	if kind == dns.TypeA {
		found = addresses(name, all)
	}
	return found, len(all) > 0
}

// endpoints returns the ready endpoints of a Service. With publishNotReadyAddresses, all of them count as ready.
func (r records) endpoints(s *corev1.Service) []discoveryv1.Endpoint {
	all, err := r.slices.EndpointSlices(s.Namespace).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: s.Name}))
	if err != nil {
		return nil // The lister of a cache returns no error.
	}
	var ready []discoveryv1.Endpoint
	for _, slice := range all {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready = append(ready, e)
			}
		}
	}
	return ready
}

// addresses returns a record for each distinct IPv4 address, in random order, because clients take the first.
func addresses(name string, all []string) []dns.RR {
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] }) //nolint:gosec // No secret depends on it.
	var found []dns.RR
	for _, address := range all {
		if ip := net.ParseIP(address).To4(); ip != nil {
			found = append(found, &dns.A{Hdr: header(name, dns.TypeA), A: ip})
		}
	}
	return found
}

func header(name string, kind uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}
