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

// Forms holds the kinds that are cached, and the forms in which they are: typed, unstructured or metadata alone. Kinds come
// and go while it is used.
type Forms struct {
	mu      sync.RWMutex
	cached  map[form]bool
	handled map[schema.GroupVersionKind]bool
}

type form struct {
	kind     schema.GroupVersionKind
	decoding decoding
}

// Add notes that the kind is handled, and cached in the form of the example.
func (f *Forms) Add(kind schema.GroupVersionKind, example client.Object) {
	f.AddRelated(kind, example)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handled == nil {
		f.handled = map[schema.GroupVersionKind]bool{}
	}
	f.handled[kind] = true
}

// AddRelated notes that the kind is cached in the form of the example, and handled only if Add says so.
func (f *Forms) AddRelated(kind schema.GroupVersionKind, example client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cached == nil {
		f.cached = map[form]bool{}
	}
	f.cached[form{kind, decodingOf(example)}] = true
}

// Remove notes that the kind is not handled any more.
func (f *Forms) Remove(kind schema.GroupVersionKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.handled, kind)
}

// RemoveCached notes that the kind is not cached any more in the form of the example.
func (f *Forms) RemoveCached(kind schema.GroupVersionKind, example client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.cached, form{kind, decodingOf(example)})
}

// Alike tells whether two examples are cached in the same form.
func Alike(one, other client.Object) bool { return decodingOf(one) == decodingOf(other) }

func (f *Forms) has(kind schema.GroupVersionKind, wanted client.Object) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.cached[form{kind, decodingOf(wanted)}]
}

// handles tells whether the kind is handled, in whatever form and version: then its objects have records.
func (f *Forms) handles(kind schema.GroupVersionKind) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for known := range f.handled {
		if known.GroupKind() == kind.GroupKind() {
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
	Cached *Forms
}

var _ client.WithWatch = Reading{}

// Live is the client without its cache.
func Live(c client.Client) client.Client {
	if reading, is := c.(Reading); is {
		return reading.Client
	}
	return c
}

// ownWatch is the key of contexts of watches that handlers begin.
type ownWatch struct{}

// Watch watches objects live, never through the cache. Streams leaves the watch out: the operator can do without it.
func (r Reading) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	live, ok := r.Client.(client.WithWatch)
	if !ok {
		return nil, errors.New("watch: the client of the operator cannot watch")
	}
	return live.Watch(context.WithValue(ctx, ownWatch{}, true), list, options...)
}

// Get reads one object: from the cache if its kind is there, else live.
func (r Reading) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(into, r.Scheme())
	if err == nil && r.Cached.has(kind, into) {
		if err := r.Cache.Get(ctx, key, into, options...); !errors.Is(err, ErrNotCached) {
			return err //nolint:wrapcheck // It speaks for itself.
		}
	}
	return notServed(r.Client.Get(ctx, key, into, options...), into)
}

// Delete deletes one object.
func (r Reading) Delete(ctx context.Context, one client.Object, options ...client.DeleteOption) error {
	return notServed(r.Client.Delete(ctx, one, options...), one)
}

// notServed turns a 404 that is not about the object into an error that apierrors.IsNotFound does not match. A handler that ignores "not found"
// when it deletes an object must not take such an answer for a finished deletion.
func notServed(err error, of client.Object) error {
	if !unserved(err) {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf(
		"%s: the API server does not serve the kind, its version or the subresource; whether the object exists is not known: %v",
		client.ObjectKeyFromObject(of), err))
}

// unserved reports whether an answer is a 404 that is not about an object, as of an API server that does not serve the API version, or of a proxy:
// it names no object, or client-go has filled the name in beside the cause that the answer is unexpected.
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
