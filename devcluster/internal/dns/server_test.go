package dns

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

func serviceOf(name string, spec corev1.ServiceSpec) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec}
}

// sliceOf are endpoints of a Service, by host name. An endpoint without one has the name of its address.
func sliceOf(service, name string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		Endpoints:  endpoints,
	}
}

func endpoint(address, host string, ready bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
	if host != "" {
		e.Hostname = &host
	}
	return e
}

// newServer serves some Services, and asks a server of this machine.
func newServer(t *testing.T) server {
	t.Helper()
	services := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	endpoints := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	headless := corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}
	for _, s := range []*corev1.Service{
		serviceOf("web", corev1.ServiceSpec{ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7", "fd00::7"}}),
		serviceOf("db", headless),
		serviceOf("many", headless),
		serviceOf("alias", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "WEB.shop.svc.cluster.local"}),
		serviceOf("outside", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}),
		serviceOf("dangling", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "none.shop.svc.cluster.local"}),
		serviceOf("loop", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "loop.shop.svc.cluster.local"}),
	} {
		_ = services.Add(s) // The key function returns no error for objects with metadata.
	}
	var all []discoveryv1.Endpoint
	for i := range 200 {
		all = append(all, endpoint(fmt.Sprintf("10.244.1.%d", i), "", true))
	}
	for _, slice := range []*discoveryv1.EndpointSlice{
		sliceOf("db", "db-1", endpoint("10.244.0.1", "db-0", true), endpoint("10.244.0.2", "db-1", false)),
		sliceOf("db", "db-2", endpoint("10.244.0.3", "db-2", true), endpoint("10.244.0.3", "db-2", true)),
		sliceOf("many", "many-1", all...),
	} {
		_ = endpoints.Add(slice) // As above.
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go ServeMachine(t.Context(), l)
	return server{
		records: records{services: corelisters.NewServiceLister(services), slices: discoverylisters.NewEndpointSliceLister(endpoints)},
		machine: func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", socket) },
	}
}

// listening starts the server by UDP and TCP and returns its addresses.
func listening(t *testing.T, handler dns.Handler) (udp, tcp string) {
	t.Helper()
	packets, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{PacketConn: packets, Handler: handler}, {Listener: l, Handler: handler}} {
		go func() { _ = s.ActivateAndServe() }() // It ends with the test.
	}
	t.Cleanup(func() { _, _ = packets.Close(), l.Close() })
	return packets.LocalAddr().String(), l.Addr().String()
}

// asked returns the code and the sorted values of the records of a reply.
func asked(t *testing.T, network, address, name string, kind uint16) string {
	t.Helper()
	client := dns.Client{Net: network, UDPSize: dns.MinMsgSize}
	reply, _, err := client.ExchangeContext(t.Context(), new(dns.Msg).SetQuestion(name, kind), address)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var values []string
	for _, record := range reply.Answer {
		values = append(values, strings.TrimPrefix(record.String(), record.Header().String()))
	}
	slices.Sort(values)
	return strings.TrimSpace(dns.RcodeToString[reply.Rcode] + " " + strings.Join(values, " "))
}

func TestNamesOfTheClusterAndOfTheMachine(t *testing.T) {
	udp, tcp := listening(t, newServer(t))
	for _, test := range []struct {
		name string
		kind uint16
		want string
	}{
		{"web.shop.svc.cluster.local.", dns.TypeA, "NOERROR 10.96.0.7"},
		{"WEB.Shop.svc.cluster.local.", dns.TypeA, "NOERROR 10.96.0.7"},
		{"web.shop.svc.cluster.local.", dns.TypeAAAA, "NOERROR"},
		{"web.other.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"pod.web.shop.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"web.shop.other.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"web.shop.anothersvc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"web.shop.svc.cluster.local.shop.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"shop.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"svc.cluster.local.", dns.TypeA, "NOERROR"},
		{"cluster.local.", dns.TypeSOA, "NOERROR"},
		{"db.shop.svc.cluster.local.", dns.TypeA, "NOERROR 10.244.0.1 10.244.0.3"},
		{"db-0.db.shop.svc.cluster.local.", dns.TypeA, "NOERROR 10.244.0.1"},
		{"db-0.db.shop.svc.cluster.local.", dns.TypeAAAA, "NOERROR"},
		{"db-1.db.shop.svc.cluster.local.", dns.TypeA, "NXDOMAIN"},
		{"alias.shop.svc.cluster.local.", dns.TypeA, "NOERROR 10.96.0.7 WEB.shop.svc.cluster.local."},
		{"alias.shop.svc.cluster.local.", dns.TypeCNAME, "NOERROR WEB.shop.svc.cluster.local."},
		{"outside.shop.svc.cluster.local.", dns.TypeA, "NOERROR 127.0.0.1 localhost."},
		{"dangling.shop.svc.cluster.local.", dns.TypeA, "NXDOMAIN none.shop.svc.cluster.local."},
		{"loop.shop.svc.cluster.local.", dns.TypeA, "NOERROR loop.shop.svc.cluster.local. loop.shop.svc.cluster.local."},
		{"localhost.", dns.TypeA, "NOERROR 127.0.0.1"},
		{"localhost.", dns.TypeTXT, "NOTIMP"},
		{"none.invalid.", dns.TypeA, "NXDOMAIN"},
	} {
		for network, address := range map[string]string{"udp": udp, "tcp": tcp} {
			if got := asked(t, network, address, test.name, test.kind); got != test.want {
				t.Errorf("%s %s by %s: %s, want %s", test.name, dns.TypeToString[test.kind], network, got, test.want)
			}
		}
	}
}

// A reply that is too long for UDP says so, and the client asks by TCP.
func TestALongReplyIsTruncated(t *testing.T) {
	udp, tcp := listening(t, newServer(t))
	got := map[string]string{}
	for _, size := range []uint16{dns.MinMsgSize, 4096} {
		query := new(dns.Msg).SetQuestion("many.shop.svc.cluster.local.", dns.TypeA)
		query.SetEdns0(size, false)
		client := dns.Client{UDPSize: size}
		reply, _, err := client.ExchangeContext(t.Context(), query, udp)
		if err != nil {
			t.Fatal(err)
		}
		got[fmt.Sprint(size)] = fmt.Sprintf("truncated: %t, all: %t", reply.Truncated, len(reply.Answer) == 200)
	}
	all := strings.Fields(asked(t, "tcp", tcp, "many.shop.svc.cluster.local.", dns.TypeA))
	got["tcp"] = fmt.Sprint(len(all)-1, " records")
	want := map[string]string{"512": "truncated: true, all: false", "4096": "truncated: false, all: true", "tcp": "200 records"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Without the machine's resolver, the names of the cluster are still known.
func TestAMissingResolverIsAFailureOfItsNamesOnly(t *testing.T) {
	s := newServer(t)
	s.machine = func(context.Context) (net.Conn, error) { return nil, net.ErrClosed }
	udp, _ := listening(t, s)
	for name, want := range map[string]string{"web.shop.svc.cluster.local.": "NOERROR 10.96.0.7", "localhost.": "SERVFAIL"} {
		if got := asked(t, "udp", udp, name, dns.TypeA); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
