package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/einmal-operators/einmal/internal/core/filter"
)

// ErrNotCached means that the namespace of an object is not watched: it is not served, does not exist, or watching it is forbidden.
var ErrNotCached = errors.New("namespace is not watched")

// NamespacedCache is a cache of some namespaces. Each namespace has its own watches, so that namespaces can come and go, and a forbidden one does
// not affect the others.
type NamespacedCache struct {
	served  filter.Namespaces
	log     *slog.Logger
	options cache.Options
	config  *rest.Config
	// wide is for cluster-scoped kinds, including namespaces.
	wide cache.Cache
	// Closed is called when the watches of a deleted namespace have ended. It may be nil.
	Closed func(namespace string)

	running sync.WaitGroup
	started chan struct{}

	mu sync.Mutex
	// over is closed when the cache ends. It is nil before the cache starts.
	over <-chan struct{}
	// namespacesKnown means that the namespaces to watch are known. listed means that all namespaces are known; present holds them.
	// reported means that the missing permission to list namespaces was logged.
	namespacesKnown, listed, reported bool
	present                           map[string]bool
	caches                            map[string]*namespaceCache
	informers                         map[informerKey]*multiInformer
	indexed                           []indexed
}

// NewNamespacedCache returns a cache of the served namespaces. The options apply to the watches in each namespace; their settings for namespaces
// are ignored.
func NewNamespacedCache(config *rest.Config, options cache.Options, served filter.Namespaces, log *slog.Logger) (*NamespacedCache, error) {
	options.DefaultNamespaces = nil
	if options.DefaultWatchErrorHandler == nil {
		options.DefaultWatchErrorHandler = toolscache.DefaultWatchErrorHandler
	}
	s := &NamespacedCache{
		served: served, log: log, options: options, config: config, started: make(chan struct{}),
		present: map[string]bool{}, caches: map[string]*namespaceCache{}, informers: map[informerKey]*multiInformer{},
	}
	wide := options
	wide.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
		s.reportForbiddenNamespaces(err)
		options.DefaultWatchErrorHandler(ctx, r, err)
	}
	var err error
	if s.wide, err = cache.New(config, wide); err != nil {
		return nil, fmt.Errorf("create cache: %w", err)
	}
	return s, nil
}

// Start watches until the context ends, and returns when all watches have ended.
func (s *NamespacedCache) Start(ctx context.Context) error {
	s.mu.Lock()
	s.over = ctx.Done()
	s.namespacesKnown = s.served.Fixed()
	for _, name := range s.served.Names() {
		s.openLocked(ctx, name)
	}
	s.mu.Unlock()
	if !s.served.Fixed() {
		if err := s.watchNamespaces(ctx); err != nil {
			return err
		}
	}
	close(s.started)
	err := s.wide.Start(ctx)
	s.running.Wait()
	if err != nil {
		return fmt.Errorf("watch cluster-scoped kinds: %w", err)
	}
	return nil
}

// WaitForCacheSync waits until the cache has started. It does not wait for lists, since that of a forbidden namespace would never arrive.
func (s *NamespacedCache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-s.started:
		return true
	case <-ctx.Done():
		return false
	}
}

// watchNamespaces watches namespaces.
func (s *NamespacedCache) watchNamespaces(ctx context.Context) error {
	informer, err := s.wide.GetInformer(ctx, namespaceMetadata(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(added any) { s.appear(ctx, nameOf(added)) },
		DeleteFunc: func(deleted any) { s.disappear(nameOf(deleted)) },
	})
	if err != nil {
		return fmt.Errorf("watch namespaces: %w", err)
	}
	s.running.Go(func() {
		if toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			s.settle()
		}
	})
	return nil
}

// settle records that all namespaces are known.
func (s *NamespacedCache) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.namespacesKnown, s.listed = true, true
}

// reportForbiddenNamespaces logs once that only namespaces that are given by name can be served.
func (s *NamespacedCache) reportForbiddenNamespaces(err error) {
	resource, refused := refusal(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !refused || resource != (schema.GroupResource{Resource: "namespaces"}) || s.reported || s.listed {
		return
	}
	s.reported = true
	named := s.served.Names()
	if len(named) == 0 {
		s.log.Error("cannot list or watch namespaces, no namespace is served",
			"namespaces", s.served.String(), "error", err, "remedy", "grant list and watch on namespaces, or give names instead of globs")
		return
	}
	s.namespacesKnown = true
	s.log.Warn("cannot list or watch namespaces, serving only those given by name",
		"namespaces", s.served.String(), "served", named, "error", err, "remedy", "grant list and watch on namespaces")
}

// refusal returns the resource whose list or watch was forbidden, if the error says that.
func refusal(err error) (schema.GroupResource, bool) {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || !apierrors.IsForbidden(err) || status.Status().Details == nil {
		return schema.GroupResource{}, false
	}
	details := status.Status().Details
	return schema.GroupResource{Group: details.Group, Resource: details.Kind}, true
}

// appear starts to watch a namespace.
func (s *NamespacedCache) appear(ctx context.Context, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present[name] = true
	if s.served.Match(name) {
		s.openLocked(ctx, name)
	}
}

// disappear stops the watches of a deleted namespace.
func (s *NamespacedCache) disappear(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.present, name)
	if leaving := s.caches[name]; leaving != nil {
		leaving.gone = true
		leaving.end()
	}
}

// Gone reports whether a namespace is known not to exist.
func (s *NamespacedCache) Gone(namespace string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listed && !s.present[namespace]
}

// Appeared reports whether a namespace was created after this process started to watch namespaces.
func (s *NamespacedCache) Appeared(namespace string) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	watched := s.caches[namespace]
	return watched != nil && watched.appeared
}

// openLocked starts to watch a namespace, unless it is watched already. If a deleted namespace of that name is still being closed, close
// opens the new one.
func (s *NamespacedCache) openLocked(ctx context.Context, name string) {
	if s.caches[name] != nil || ctx.Err() != nil {
		return
	}
	opened, err := s.newNamespaceCache(name)
	if err != nil {
		s.log.Error("cannot watch namespace", "namespace", name, "error", err)
		return
	}
	ending, end := context.WithCancel(ctx)
	opened.end, opened.appeared = end, s.listed
	s.caches[name] = opened
	for _, each := range s.indexed {
		if err := opened.cache.IndexField(ctx, each.of, each.field, each.extract); err != nil {
			s.log.Error("cannot index namespace", "namespace", name, "field", each.field, "error", err)
		}
	}
	for _, informer := range s.informers {
		if err := informer.enterLocked(ctx, opened); err != nil {
			s.log.Error("cannot watch kind in namespace", "namespace", name, "error", err)
		}
	}
	s.running.Go(func() {
		if err := opened.cache.Start(ending); err != nil {
			s.log.Error("watches of namespace ended", "namespace", name, "error", err)
		}
		if ctx.Err() == nil {
			s.close(ctx, opened)
		}
	})
}

// close tells the event handlers of a deleted namespace that all of its objects are deleted.
func (s *NamespacedCache) close(ctx context.Context, gone *namespaceCache) {
	s.mu.Lock()
	var left []*deliveryTracker
	for _, informer := range s.informers {
		left = append(left, informer.leaveLocked(gone)...)
	}
	s.mu.Unlock()
	for _, each := range left {
		each.rest()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.caches, gone.namespace)
	if s.Closed != nil {
		s.Closed(gone.namespace)
	}
	if s.present[gone.namespace] {
		s.openLocked(ctx, gone.namespace)
	}
}
