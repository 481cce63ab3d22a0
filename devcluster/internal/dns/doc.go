// Package dns answers the DNS queries of Pods: names in the domain cluster.local from the Services of the cluster, and all other names as programs of
// the machine resolve them. It follows the specification of DNS-based service discovery,
// https://github.com/kubernetes/dns/blob/master/docs/specification.md, without SRV and PTR records
// and without names for addresses of Pods.
package dns

const (
	// User is the user name of the component that answers queries.
	User = "devcluster:dns"
	// Domain is the domain of the cluster, without a final dot.
	Domain = "cluster.local"

	zone = Domain + "."
	// ttl is how many seconds clients may keep an answer. It is the default of CoreDNS.
	ttl = 5
)
