package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/cacheapi"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

var _ cache.Cache = (*NamespacedCache)(nil)

// indexed is an index in every namespace.
type indexed struct {
	of      client.Object
	field   string
	extract client.IndexerFunc
}

// GetInformer returns the informer of a kind in all namespaces. Unless an option says otherwise, it waits for the lists of all namespaces
// that may be watched.
func (s *NamespacedCache) GetInformer(ctx context.Context, of client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	namespaced, err := s.namespaced(of)
	if err != nil {
		return nil, err
	}
	if !namespaced {
		return s.wide.GetInformer(ctx, of, options...) //nolint:wrapcheck // The error names the kind.
	}
	found, err := s.informerOf(ctx, of)
	if err != nil {
		return nil, err
	}
	var asked cacheapi.InformerGetOptions
	for _, option := range options {
		option(&asked)
	}
	if asked.BlockUntilSynced != nil && !*asked.BlockUntilSynced {
		return found, nil
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), found.HasSynced) {
		return nil, fmt.Errorf("wait for lists of %s: %w", found.resource, context.Cause(ctx))
	}
	return found, nil
}

// informerOf returns the informer of a kind, and creates it if necessary.
func (s *NamespacedCache) informerOf(ctx context.Context, of client.Object) (*multiInformer, error) {
	kind, err := apiutil.GVKForObject(of, s.options.Scheme)
	if err != nil {
		return nil, fmt.Errorf("watch %T: %w", of, err)
	}
	mapping, err := s.options.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", kind, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := informerKey{kind, decodingOf(of)}
	if known := s.informers[key]; known != nil {
		return known, nil
	}
	made := &multiInformer{
		namespaced: s, example: of, resource: mapping.Resource.GroupResource(),
		informers: map[*namespaceCache]cache.Informer{}, registrations: map[*multiRegistration]struct{}{},
	}
	s.informers[key] = made
	for _, where := range s.caches {
		if where.gone {
			continue
		}
		if err := made.enterLocked(ctx, where); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// GetInformerForKind is GetInformer for a kind of the scheme.
func (s *NamespacedCache) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	made, err := s.options.Scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", kind, err)
	}
	of, is := made.(client.Object)
	if !is {
		return nil, fmt.Errorf("watch %s: %T is not a client.Object", kind, made)
	}
	return s.GetInformer(ctx, of, options...)
}

// RemoveInformer stops the watches of a kind.
func (s *NamespacedCache) RemoveInformer(ctx context.Context, of client.Object) error {
	if err := s.wide.RemoveInformer(ctx, of); err != nil { // Has no effect if the kind is not watched.
		return fmt.Errorf("stop watching %T: %w", of, err)
	}
	kind, err := apiutil.GVKForObject(of, s.options.Scheme)
	if err != nil {
		return fmt.Errorf("stop watching %T: %w", of, err)
	}
	s.mu.Lock()
	key := informerKey{kind, decodingOf(of)}
	if known := s.informers[key]; known != nil {
		known.stopped = true
		delete(s.informers, key)
	}
	s.mu.Unlock()
	for _, where := range s.within("") {
		if err := where.cache.RemoveInformer(ctx, of); err != nil {
			return fmt.Errorf("stop watching %s in namespace %s: %w", kind, where.namespace, err)
		}
	}
	return nil
}

// IndexField indexes a kind by a field, also in namespaces that appear later.
func (s *NamespacedCache) IndexField(ctx context.Context, of client.Object, field string, extract client.IndexerFunc) error {
	namespaced, err := s.namespaced(of)
	if err != nil {
		return err
	}
	if !namespaced {
		return s.wide.IndexField(ctx, of, field, extract) //nolint:wrapcheck // The error names the kind.
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexed = append(s.indexed, indexed{of, field, extract})
	for _, where := range s.caches {
		if err := where.cache.IndexField(ctx, of, field, extract); err != nil {
			return fmt.Errorf("index %T in namespace %s: %w", of, where.namespace, err)
		}
	}
	return nil
}

// Get reads an object. ErrNotCached, which is also a NotFound error, means that the namespace of the object is not watched.
func (s *NamespacedCache) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	namespaced, err := s.namespaced(into)
	if err != nil {
		return err
	}
	if !namespaced {
		return s.wide.Get(ctx, key, into, options...) //nolint:wrapcheck // The error names the object.
	}
	where, err := s.watched(key, into)
	if err != nil {
		return err
	}
	return where.cache.Get(ctx, key, into, options...) //nolint:wrapcheck // The error names the object.
}

// watched returns the cache of the namespace that an object is in.
func (s *NamespacedCache) watched(key client.ObjectKey, of client.Object) (*namespaceCache, error) {
	kind, err := apiutil.GVKForObject(of, s.options.Scheme)
	if err != nil {
		return nil, fmt.Errorf("read %T: %w", of, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	where := s.caches[key.Namespace]
	informer := s.informers[informerKey{kind, decodingOf(of)}]
	if where == nil || where.gone || informer != nil && informer.refusedLocked(where) {
		return nil, fmt.Errorf("%w: %w", ErrNotCached, apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name))
	}
	return where, nil
}

// refusedLocked reports whether watching the kind in a namespace is forbidden. When the right is granted, objects of the list are delivered before the
// informer counts as synced. They can be read.
func (m *multiInformer) refusedLocked(where *namespaceCache) bool {
	informer, entered := m.informers[where]
	return where.refused[m.resource] && !where.listing[m.resource] && (!entered || !informer.HasSynced())
}

// List lists the objects of one namespace, or of all watched namespaces.
func (s *NamespacedCache) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	namespaced, err := s.namespaced(into)
	if err != nil {
		return err
	}
	if !namespaced {
		return s.wide.List(ctx, into, options...) //nolint:wrapcheck // The error names the kind.
	}
	asked := (&client.ListOptions{}).ApplyOptions(options)
	var all []runtime.Object
	for _, where := range s.within(asked.Namespace) {
		some, is := into.DeepCopyObject().(client.ObjectList)
		if !is {
			return fmt.Errorf("list into %T: not a client.ObjectList", into)
		}
		if err := where.cache.List(ctx, some, asked); err != nil {
			return fmt.Errorf("list namespace %s: %w", where.namespace, err)
		}
		items, err := meta.ExtractList(some)
		if err != nil {
			return fmt.Errorf("list into %T: %w", into, err)
		}
		all = append(all, items...)
	}
	if asked.Limit > 0 && int64(len(all)) > asked.Limit {
		all = all[:asked.Limit]
	}
	if err := meta.SetList(into, all); err != nil {
		return fmt.Errorf("list into %T: %w", into, err)
	}
	return nil
}

// within returns the cache of one namespace, or of all namespaces, sorted by name.
func (s *NamespacedCache) within(namespace string) []*namespaceCache {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*namespaceCache
	for name, where := range s.caches {
		if !where.gone && (namespace == "" || namespace == name) {
			found = append(found, where)
		}
	}
	slices.SortFunc(found, func(a, b *namespaceCache) int { return strings.Compare(a.namespace, b.namespace) })
	return found
}

func (s *NamespacedCache) namespaced(of runtime.Object) (bool, error) {
	namespaced, err := apiutil.IsObjectNamespaced(of, s.options.Scheme, s.options.Mapper)
	if err != nil {
		return false, fmt.Errorf("determine scope of %T: %w", of, err)
	}
	return namespaced, nil
}

// ended returns a channel that is closed when the cache ends. The cache must have started.
func (s *NamespacedCache) ended() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// ListNamespaces lists the names of all namespaces.
func ListNamespaces(ctx context.Context, api client.Reader) ([]string, error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "NamespaceList"})
	if err := api.List(ctx, found); err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	var names []string
	for i := range found.Items {
		names = append(names, found.Items[i].Name)
	}
	return names, nil
}
