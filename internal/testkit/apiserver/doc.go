// Package apiserver is a Kubernetes API server in memory, for tests: it answers over HTTP without a socket, so that
// unmodified clients, caches and managers run against it in the virtual time of testing/synctest. What it promises is
// written down in the contract suite, which a real kube-apiserver passes too.
//
//	definitions, err := apiserver.ParseDefinitions(manifest) // Once: compiling takes a while.
//	server, err := apiserver.New(apiserver.WithDefinitions(definitions))
//	defer server.Close()
//	mgr, err := ctrl.NewManager(server.Config(), options)
//
// A server used in a bubble must be made in that bubble, and closed before it ends. An Interceptor disturbs requests;
// SeverWatches and ExpireWatches disturb what is open.
//
// What a real cluster has and this one has not: authentication and authorization, admission by webhooks and policies,
// conversion by webhook, protobuf, YAML, tables, and every controller but the garbage collector and those of namespaces, claims
// and definitions. Pods do not run. One that is on a node ends when its grace period does.
//
// Objects of built-in kinds are validated as far as operators usually write them. A field that is not validated here is
// refused with 501 and the reason NotChecked, unless WithUnchecked allows it. Subresources that only a real server has,
// such as eviction, are refused with 501 and the reason NotServed. See docs/decisions/0017.
package apiserver
