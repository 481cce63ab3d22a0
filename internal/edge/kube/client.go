package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Forms holds the kinds that are cached, and the one form in which each is: typed or unstructured.
type Forms map[schema.GroupVersionKind]bool

// Add notes that the kind is cached in the form of the example.
func (f Forms) Add(kind schema.GroupVersionKind, example client.Object) {
	_, unstructured := example.(runtime.Unstructured)
	f[kind] = unstructured
}

func (f Forms) has(kind schema.GroupVersionKind, wanted client.Object) bool {
	_, asUnstructured := wanted.(runtime.Unstructured)
	unstructured, cached := f[kind]
	return cached && unstructured == asUnstructured
}

// handled tells whether the kind is cached, in whatever form and version: then its objects have records.
func (f Forms) handled(kind schema.GroupVersionKind) bool {
	for cached := range f {
		if cached.GroupKind() == kind.GroupKind() {
			return true
		}
	}
	return false
}

// Reading serves Get of the handled kinds from the cache, if asked for in the form that is cached, and everything else
// live: one cached read of a Secret would start an informer of every Secret in the cluster. What it writes to handled kinds
// keeps their records.
type Reading struct {
	client.Client
	Cache  client.Reader
	Cached Forms
}

// Get reads one object: from the cache if its kind is handled, else live.
func (r Reading) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(into, r.Scheme())
	if err == nil && r.Cached.has(kind, into) {
		return r.Cache.Get(ctx, key, into, options...)
	}
	return r.Client.Get(ctx, key, into, options...)
}
