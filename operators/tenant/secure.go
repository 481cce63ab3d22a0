package main

import (
	"net"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/einmal-operators/einmal/operators/tenant/api/v1"
)

// connectionSecure is the condition ConnectionSecure of a backend with servers that TLS does not verify, at these addresses. Whoever is on the
// way can read and change what is sent there, unless it stays on this machine.
func connectionSecure(unverified []string) metav1.Condition {
	exposed := slices.DeleteFunc(slices.Clone(unverified), onLoopback)
	if len(exposed) == 0 {
		return metav1.Condition{
			Type: v1.ConditionConnectionSecure, Status: metav1.ConditionTrue, Reason: "Verified",
			Message: "TLS verifies each server that is not on the operator's own machine",
		}
	}
	return metav1.Condition{
		Type: v1.ConditionConnectionSecure, Status: metav1.ConditionFalse, Reason: "Unverified",
		Message: "connections without verified TLS: " + strings.Join(exposed, ", ") +
			"; set sslmode=verify-full in the DSN of PostgreSQL, spec.cache.redis.tls, or spec.cache.elastiCache.insecure to false",
	}
}

// onLoopback reports whether an address, host:port, does not leave the machine.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// unverifiedCache returns the addresses of a cache that is connected to without TLS. Where there is TLS, it verifies.
func unverifiedCache(of *v1.CacheBackend) []string {
	switch {
	case of.Redis != nil && !of.Redis.TLS:
		return of.Redis.Nodes
	case of.ElastiCache != nil && of.ElastiCache.Insecure:
		return []string{of.ElastiCache.Endpoint}
	}
	return nil
}
