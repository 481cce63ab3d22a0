// Package realnode runs a node whose Pods are real containers. The kubelet and kube-proxy are part of devcluster's binary. containerd, runc, the
// CNI plugins and nft are programs of the machine.
//
// The node lives in namespaces of its own for processes, mounts, network, IPC and host name, so that it changes nothing on the machine, and ends
// as a whole when its first process ends. The control plane stays outside. Unix sockets in the data directory join the two networks:
//
//	machine                                     node
//	API server 127.0.0.1:PORT  <- api.sock    - 10.250.0.1:PORT, the endpoint of the Service kubernetes
//	API server                 -> node.sock   - kubelet, Pods and Services, for logs, exec, port-forward and webhooks
//	the machine's resolver     <- dns.sock    - the DNS server of Pods, for names outside the cluster
//
// Only Linux can run such a node. On other systems, Problems says so.
package realnode

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// Component is the name of the component that runs the node.
	Component = "real-node"
	// Name is the name of the node.
	Name = "devcluster"
	// Address is the address of the node. It exists only in the node's network.
	Address = "10.250.0.1"
	// ServiceRange is the address range of Services.
	ServiceRange = "10.96.0.0/16"
	// DNSAddress is the address of the Service that answers the DNS queries of Pods.
	DNSAddress = "10.96.0.10"
	// PodRange is the address range of Pods.
	PodRange = "10.244.0.0/24"

	// Socket names, relative to the data directory. A process uses them with the data directory as its working directory, because the path of a
	// unix socket has at most 107 bytes.
	apiSocket    = "api.sock"
	nodeSocket   = "node.sock"
	egressSocket = "egress.sock"
	dnsSocket    = "dns.sock"
)

// Problem is something that this machine lacks for a real node.
type Problem struct {
	// Text says what is missing. Remedy is a command or a sentence that helps; "" if nothing does.
	Text, Remedy string
}

// Missing is the error that names all problems; nil for none.
func Missing(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	text := &strings.Builder{}
	text.WriteString("run a real node: this machine cannot do it")
	var remedies []string
	seen := map[string]bool{}
	for _, p := range problems {
		fmt.Fprintf(text, "\n  %s", p.Text)
		if p.Remedy != "" && !seen[p.Remedy] {
			seen[p.Remedy] = true
			remedies = append(remedies, p.Remedy)
		}
	}
	for _, remedy := range append(remedies, "or start simulated nodes: devcluster up") {
		fmt.Fprintf(text, "\nremedy: %s", remedy)
	}
	return errors.New(text.String())
}
