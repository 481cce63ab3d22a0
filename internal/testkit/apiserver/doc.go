// Package apiserver is a Kubernetes API server in memory, for tests: it answers over HTTP without a socket, so that
// unmodified clients, caches and managers run against it in the virtual time of testing/synctest. What it promises is
// written down in the contract suite, which a real kube-apiserver passes too.
//
// A server used in a bubble must be made in that bubble, and closed before it ends.
package apiserver
