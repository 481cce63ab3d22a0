package dns

import (
	"context"
	"fmt"
	"net"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	port = 53
	// service is the name of the Service in most clusters, whatever program answers.
	service = "kube-dns"
)

// Run answers the queries of Pods on an address, host:port, by UDP and TCP, until the context ends. It listens when it has read the Services. machine is
// the socket of ServeMachine.
func Run(ctx context.Context, kubeconfig, address, machine string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	s := server{
		records: records{services: factory.Core().V1().Services().Lister(), slices: factory.Discovery().V1().EndpointSlices().Lister()},
		machine: func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", machine)
		},
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("read %s: %w", kind, context.Cause(ctx))
		}
	}
	return serve(ctx, s, address)
}

// serve listens by UDP and TCP.
func serve(ctx context.Context, handler dns.Handler, address string) error {
	networks := []string{"udp", "tcp"}
	ended := make(chan error, len(networks))
	var all []*dns.Server
	for _, network := range networks {
		one := &dns.Server{Addr: address, Net: network, Handler: handler}
		all = append(all, one)
		go func() { ended <- one.ListenAndServe() }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
		err = fmt.Errorf("serve on %s: %w", address, err)
	}
	for _, one := range all {
		_ = one.Shutdown() // One that does not listen has nothing to end.
	}
	return err
}

// Rules returns the permissions that User needs.
func Rules() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: read},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
	}
}

// EnsureService creates the Service that Pods send their queries to, with an address, and the endpoint that answers.
func EnsureService(ctx context.Context, client kubernetes.Interface, address, endpoint string) error {
	// A creation of what exists would fail because its address is taken.
	_, err := client.CoreV1().Services(metav1.NamespaceSystem).Get(ctx, service, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	meta := metav1.ObjectMeta{Name: service, Namespace: metav1.NamespaceSystem}
	s := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: address}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service + "-devcluster", Namespace: metav1.NamespaceSystem, Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{endpoint}}},
	}
	for name, protocol := range map[string]corev1.Protocol{"dns": corev1.ProtocolUDP, "dns-tcp": corev1.ProtocolTCP} {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: name, Port: port, Protocol: protocol})
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &name, Port: new(int32(port)), Protocol: &protocol})
	}
	_, err = client.DiscoveryV1().EndpointSlices(meta.Namespace).Create(ctx, slice, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create EndpointSlice %s: %w", slice.Name, err)
	}
	// The Service comes last: where it exists, both do.
	if _, err := client.CoreV1().Services(meta.Namespace).Create(ctx, s, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create Service %s: %w", service, err)
	}
	return nil
}
