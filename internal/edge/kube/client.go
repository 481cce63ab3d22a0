package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// decoding is how objects are decoded.
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

// CachedTypes holds the cached kinds and how they are decoded: typed, unstructured or metadata only. Kinds can be added and removed at any time.
type CachedTypes struct {
	mu      sync.RWMutex
	cached  map[form]bool
	handled map[schema.GroupVersionKind]bool
}

type form struct {
	kind     schema.GroupVersionKind
	decoding decoding
}

// Add registers the kind as handled, and as cached in the form of the example.
func (f *CachedTypes) Add(kind schema.GroupVersionKind, example client.Object) {
	f.AddRelated(kind, example)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handled == nil {
		f.handled = map[schema.GroupVersionKind]bool{}
	}
	f.handled[kind] = true
}

// AddRelated registers the kind as cached in the form of the example. It does not register it as handled.
func (f *CachedTypes) AddRelated(kind schema.GroupVersionKind, example client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cached == nil {
		f.cached = map[form]bool{}
	}
	f.cached[form{kind, decodingOf(example)}] = true
}

// Remove removes the kind from the handled ones.
func (f *CachedTypes) Remove(kind schema.GroupVersionKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.handled, kind)
}

// RemoveCached removes the kind in the form of the example from the cached ones.
func (f *CachedTypes) RemoveCached(kind schema.GroupVersionKind, example client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.cached, form{kind, decodingOf(example)})
}

// Alike reports whether two examples are cached in the same form.
func Alike(one, other client.Object) bool { return decodingOf(one) == decodingOf(other) }

func (f *CachedTypes) has(kind schema.GroupVersionKind, wanted client.Object) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.cached[form{kind, decodingOf(wanted)}]
}

// handles reports whether the kind is handled in any form and version, so that its objects have records.
func (f *CachedTypes) handles(kind schema.GroupVersionKind) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for known := range f.handled {
		if known.GroupKind() == kind.GroupKind() {
			return true
		}
	}
	return false
}

// SplitClient is a client that serves Get of cached kinds from the cache, if the caller wants the cached form, and sends everything else to
// the API server: a single cached read of a Secret would otherwise start an informer for all Secrets of the cluster. Its writes to
// handled kinds keep their records.
type SplitClient struct {
	client.Client
	Cache  client.Reader
	Cached *CachedTypes
	// Tolerance leaves objects that cannot be decoded out of lists.
	Tolerance *Tolerance
}

var _ client.WithWatch = SplitClient{}

// Live returns the client without its cache.
func Live(c client.Client) client.Client {
	if split, is := c.(SplitClient); is {
		return split.Client
	}
	return c
}

// ownWatch is the context key of watches that handlers start.
type ownWatch struct{}

// Watch watches objects on the API server, never through the cache. WatchHealth ignores the watch, since the operator does not depend on it.
func (r SplitClient) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	live, ok := r.Client.(client.WithWatch)
	if !ok {
		return nil, errors.New("watch: the operator's client does not support watches")
	}
	return live.Watch(context.WithValue(ctx, ownWatch{}, true), list, options...)
}

// Get reads one object, from the cache if its kind is cached, otherwise from the API server.
func (r SplitClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(into, r.Scheme())
	if err == nil && r.Cached.has(kind, into) {
		if err := r.Cache.Get(ctx, key, into, options...); !errors.Is(err, ErrNotCached) {
			return err //nolint:wrapcheck // The error names the object.
		}
	}
	return notServed(r.Client.Get(ctx, key, into, options...), into)
}

// List lists objects on the API server. It leaves out objects that cannot be decoded.
func (r SplitClient) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	return r.Tolerance.List(ctx, into, func(ctx context.Context) error { return r.Client.List(ctx, into, options...) })
}

// Delete deletes one object.
func (r SplitClient) Delete(ctx context.Context, one client.Object, options ...client.DeleteOption) error {
	return notServed(r.Client.Delete(ctx, one, options...), one)
}

// notServed turns a 404 that is not about the object into an error that apierrors.IsNotFound does not match. A handler that ignores
// "not found" when it deletes an object must not mistake such a response for a finished deletion.
func notServed(err error, of client.Object) error {
	if !unserved(err) {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf(
		"%s: the API server does not serve the kind, its version or the subresource; it is unknown whether the object exists: %v",
		client.ObjectKeyFromObject(of), err))
}

// unserved reports whether an error is a 404 that is not about an object, for example from a proxy, or from an API server that does not
// serve the API version. Such a 404 names no object, or client-go has added the name together with the cause "unexpected response".
func unserved(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || slices.ContainsFunc(details.Causes, func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}
