package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/einmal-operators/einmal/devcluster/internal/dns"
	"github.com/einmal-operators/einmal/devcluster/internal/instance"
	"github.com/einmal-operators/einmal/devcluster/internal/node"
	"github.com/einmal-operators/einmal/devcluster/internal/pki"
	"github.com/einmal-operators/einmal/devcluster/internal/realnode"
	"github.com/einmal-operators/einmal/devcluster/internal/volume"
)

const (
	pkiDir     = "pki"
	signingKey = "service-account.key"
	// mastersGroup has all permissions, independently of RBAC objects.
	mastersGroup = "system:masters"
	adminUser    = "devcluster-admin"
)

// identities writes the certificates, keys and kubeconfigs of all components and
// returns the kubeconfig of the administrator.
func identities(d instance.Dir, server string) (admin []byte, err error) {
	if err := os.MkdirAll(d.File(pkiDir), 0o700); err != nil {
		return nil, err
	}
	ca, err := pki.LoadOrCreateAuthority(d.File(pkiDir), "ca")
	if err != nil {
		return nil, err
	}
	frontProxyCA, err := pki.LoadOrCreateAuthority(d.File(pkiDir), "front-proxy-ca")
	if err != nil {
		return nil, err
	}
	proxy, err := frontProxyCA.Issue(pki.Request{CommonName: "front-proxy-client"})
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		pki.EnsureSigningKey(d.File(pkiDir, signingKey)),
		proxy.Write(d.File(pkiDir), "front-proxy-client"),
		serving(d, ca),
		clients(d, ca, server),
		nodeIdentities(d, ca, server),
	)
	if err != nil {
		return nil, fmt.Errorf("create credentials: %w", err)
	}
	pair, err := ca.Issue(pki.Request{CommonName: adminUser, Organizations: []string{mastersGroup}})
	if err != nil {
		return nil, err
	}
	return pki.Kubeconfig(server, adminUser, ca, pair), nil
}

func serving(d instance.Dir, ca *pki.Authority) error {
	local := []net.IP{net.IPv4(127, 0, 0, 1)}
	requests := map[string]pki.Request{
		"apiserver": {
			CommonName: apiServer,
			DNSNames: []string{
				"localhost", "kubernetes", "kubernetes.default",
				"kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
			},
			IPs: append(local, net.IPv4(10, 96, 0, 1), net.ParseIP(realnode.Address)),
		},
		controllerManager: {CommonName: controllerManager, DNSNames: []string{"localhost"}, IPs: local},
		scheduler:         {CommonName: scheduler, DNSNames: []string{"localhost"}, IPs: local},
	}
	for name, request := range requests {
		pair, err := ca.Issue(request)
		if err != nil {
			return err
		}
		if err := pair.Write(d.File(pkiDir), name); err != nil {
			return err
		}
	}
	return nil
}

// nodeIdentities writes the credentials of a real node, and those with which the
// API server calls its kubelet.
func nodeIdentities(d instance.Dir, ca *pki.Authority, server string) error {
	for name, request := range map[string]pki.Request{
		"apiserver-kubelet-client": {CommonName: "kube-apiserver-kubelet-client", Organizations: []string{mastersGroup}},
		"kubelet":                  {CommonName: realnode.Name, DNSNames: []string{realnode.Name}, IPs: []net.IP{net.ParseIP(realnode.Address)}},
	} {
		pair, err := ca.Issue(request)
		if err != nil {
			return err
		}
		if err := pair.Write(d.File(pkiDir), name); err != nil {
			return err
		}
	}
	for name, request := range map[string]pki.Request{
		"kubelet":    {CommonName: "system:node:" + realnode.Name, Organizations: []string{"system:nodes"}},
		"kube-proxy": {CommonName: "system:kube-proxy"},
		"dns":        {CommonName: dns.User},
	} {
		pair, err := ca.Issue(request)
		if err != nil {
			return err
		}
		config := pki.Kubeconfig(server, request.CommonName, ca, pair)
		if err := pki.WriteKubeconfig(d.File(pkiDir, name+".kubeconfig"), config); err != nil {
			return err
		}
	}
	return nil
}

func clients(d instance.Dir, ca *pki.Authority, server string) error {
	for name, user := range map[string]string{
		controllerManager: "system:kube-controller-manager",
		scheduler:         "system:kube-scheduler",
		nodes:             node.User,
		volumes:           volume.User,
	} {
		pair, err := ca.Issue(pki.Request{CommonName: user})
		if err != nil {
			return err
		}
		config := pki.Kubeconfig(server, user, ca, pair)
		if err := pki.WriteKubeconfig(d.File(pkiDir, name+".kubeconfig"), config); err != nil {
			return err
		}
	}
	return nil
}
