package kube

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// decoding is the form in which objects are decoded.
type decoding int

const (
	typed decoding = iota
	free
	metadataOnly
)

func decodingOf(example client.Object) decoding {
	switch example.(type) {
	case runtime.Unstructured:
		return free
	case *metav1.PartialObjectMetadata:
		return metadataOnly
	default:
		return typed
	}
}

// Forms holds the kinds that are cached, and the one form in which each is: typed, unstructured or metadata alone.
type Forms map[schema.GroupVersionKind]form

type form struct {
	decoding decoding
	handled  bool
}

// Add notes that the kind is handled, and cached in the form of the example.
func (f Forms) Add(kind schema.GroupVersionKind, example client.Object) {
	f[kind] = form{decoding: decodingOf(example), handled: true}
}

// AddRelated notes that the kind is cached in the form of the example, and handled only if Add says so.
func (f Forms) AddRelated(kind schema.GroupVersionKind, example client.Object) {
	f[kind] = form{decoding: decodingOf(example), handled: f[kind].handled}
}

func (f Forms) has(kind schema.GroupVersionKind, wanted client.Object) bool {
	known, cached := f[kind]
	return cached && known.decoding == decodingOf(wanted)
}

// handled tells whether the kind is handled, in whatever form and version: then its objects have records.
func (f Forms) handled(kind schema.GroupVersionKind) bool {
	for cached, known := range f {
		if known.handled && cached.GroupKind() == kind.GroupKind() {
			return true
		}
	}
	return false
}

// Reading serves Get of the kinds that are cached from there, if asked for in the form that is cached, and everything else
// live: one cached read of a Secret would start an informer of every Secret in the cluster. What it writes to handled kinds
// keeps their records.
type Reading struct {
	client.Client
	Cache  client.Reader
	Cached Forms
}

// Live is the client without its cache.
func Live(c client.Client) client.Client {
	if reading, is := c.(Reading); is {
		return reading.Client
	}
	return c
}

// Get reads one object: from the cache if its kind is there, else live.
func (r Reading) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(into, r.Scheme())
	if err == nil && r.Cached.has(kind, into) {
		if err := r.Cache.Get(ctx, key, into, options...); !errors.Is(err, ErrNotCached) {
			return err //nolint:wrapcheck // It speaks for itself.
		}
	}
	return r.Client.Get(ctx, key, into, options...)
}
