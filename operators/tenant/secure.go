package main

import (
	"net"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

// connectionSecure returns the condition ConnectionSecure of a backend, given the addresses of servers that TLS does not verify. Addresses
// on this machine do not count: traffic to all others can be read and changed on the way.
func connectionSecure(unverified []string) metav1.Condition {
	exposed := slices.DeleteFunc(slices.Clone(unverified), onLoopback)
	if len(exposed) == 0 {
		return metav1.Condition{
			Type: v1.ConditionConnectionSecure, Status: metav1.ConditionTrue, Reason: "Verified",
			Message: "TLS verifies every server that is not on the operator's own machine",
		}
	}
	return metav1.Condition{
		Type: v1.ConditionConnectionSecure, Status: metav1.ConditionFalse, Reason: "Unverified",
		Message: "connections without verified TLS: " + strings.Join(exposed, ", ") +
			"; set sslmode=verify-full in the PostgreSQL DSN, spec.cache.redis.tls to true, or spec.cache.elastiCache.insecure to false",
	}
}

// onLoopback reports whether an address, as host:port, is on this machine.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// unverifiedCache returns the addresses of a cache that is used without TLS. With TLS, certificates are always verified.
func unverifiedCache(of *v1.CacheBackend) []string {
	switch {
	case of.Redis != nil && !of.Redis.TLS:
		return of.Redis.Nodes
	case of.ElastiCache != nil && of.ElastiCache.Insecure:
		return []string{of.ElastiCache.Endpoint}
	}
	return nil
}
