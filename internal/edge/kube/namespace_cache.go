package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespaceCache is the cache of one namespace. The lock of NamespacedCache protects its fields.
type namespaceCache struct {
	namespace string
	cache     cache.Cache
	// end stops the watches.
	end context.CancelFunc
	// gone means that the namespace was deleted. appeared means that it was created after the first list of namespaces.
	gone, appeared bool
	// refused holds the kinds for which the last watch in this namespace was forbidden.
	refused map[schema.GroupResource]bool
	// listing holds the kinds of which objects have been delivered. Their list is in the cache, or will be in a moment.
	listing map[schema.GroupResource]bool
}

func (s *NamespacedCache) newNamespaceCache(name string) (*namespaceCache, error) {
	opened := &namespaceCache{namespace: name, refused: map[schema.GroupResource]bool{}, listing: map[schema.GroupResource]bool{}}
	options := s.options
	options.DefaultNamespaces = map[string]cache.Config{name: {}}
	options.NewInformer = closable(options.NewInformer)
	options.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
		s.reportForbiddenKind(opened, err)
		s.options.DefaultWatchErrorHandler(ctx, r, err)
	}
	var err error
	if opened.cache, err = cache.New(s.config, options); err != nil {
		return nil, fmt.Errorf("create cache of namespace %s: %w", name, err)
	}
	return opened, nil
}

// reportForbiddenKind logs once that a kind is not watched in a namespace.
func (s *NamespacedCache) reportForbiddenKind(where *namespaceCache, err error) {
	resource, refused := refusal(err)
	if !refused {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !where.refused[resource] {
		where.refused[resource] = true
		s.log.Warn("not watching namespace: forbidden; will retry",
			"namespace", where.namespace, "resource", resource.String(), "error", err)
	}
}

// deliveryTracker forwards events and tracks which objects exist.
type deliveryTracker struct {
	to toolscache.ResourceEventHandler
	// begins is called before the first object is forwarded.
	begins func()

	mu   sync.Mutex
	live map[string]any
}

// OnAdd records and forwards a new object.
func (t *deliveryTracker) OnAdd(added any, initial bool) {
	t.begins()
	t.note(added)
	t.to.OnAdd(added, initial)
}

// OnUpdate records and forwards the new version of an object.
func (t *deliveryTracker) OnUpdate(before, after any) {
	t.note(after)
	t.to.OnUpdate(before, after)
}

// OnDelete forgets an object and forwards its deletion.
func (t *deliveryTracker) OnDelete(deleted any) {
	if key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(deleted); err == nil {
		t.mu.Lock()
		delete(t.live, key)
		t.mu.Unlock()
	}
	t.to.OnDelete(deleted)
}

func (t *deliveryTracker) note(object any) {
	key, err := toolscache.MetaNamespaceKeyFunc(object)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live[key] = object
}

// rest delivers the deletion of all objects that still exist for the handler.
func (t *deliveryTracker) rest() {
	t.mu.Lock()
	live := t.live
	t.live = map[string]any{}
	t.mu.Unlock()
	for key, last := range live {
		t.to.OnDelete(toolscache.DeletedFinalStateUnknown{Key: key, Obj: last})
	}
}

// closableInformer is an informer that counts as synced when it has ended. Otherwise callers that wait for a list that is forbidden would wait
// forever.
type closableInformer struct {
	toolscache.SharedIndexInformer

	ended chan struct{}
}

// newInformer is the type of NewInformer in cache.Options.
type newInformer = func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer

// closable returns a function that creates closable informers. Nil creates those of client-go.
func closable(inner newInformer) newInformer {
	if inner == nil {
		inner = toolscache.NewSharedIndexInformer
	}
	return func(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
		return &closableInformer{SharedIndexInformer: inner(from, example, resync, by), ended: make(chan struct{})}
	}
}

// RunWithContext runs the informer.
func (m *closableInformer) RunWithContext(ctx context.Context) {
	defer close(m.ended)
	m.SharedIndexInformer.RunWithContext(ctx)
}

// HasSyncedChecker is done when the list has arrived or the informer has ended.
func (m *closableInformer) HasSyncedChecker() toolscache.DoneChecker {
	return m.orEnded(m.SharedIndexInformer.HasSyncedChecker())
}

// AddEventHandler adds a handler.
func (m *closableInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return m.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithOptions adds a handler.
func (m *closableInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := m.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
	if err != nil {
		return nil, fmt.Errorf("add event handler: %w", err)
	}
	return closableRegistration{registration, m}, nil
}

// RemoveEventHandler removes a handler.
func (m *closableInformer) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	if known, is := registration.(closableRegistration); is {
		registration = known.ResourceEventHandlerRegistration
	}
	if err := m.SharedIndexInformer.RemoveEventHandler(registration); err != nil {
		return fmt.Errorf("remove event handler: %w", err)
	}
	return nil
}

type closableRegistration struct {
	toolscache.ResourceEventHandlerRegistration

	of *closableInformer
}

// HasSyncedChecker is done when the handler has received the whole list or the informer has ended.
func (r closableRegistration) HasSyncedChecker() toolscache.DoneChecker {
	return r.of.orEnded(r.ResourceEventHandlerRegistration.HasSyncedChecker())
}

func (m *closableInformer) orEnded(checker toolscache.DoneChecker) toolscache.DoneChecker {
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-checker.Done():
		case <-m.ended:
		}
	}()
	return finished{checker.Name(), done}
}

// finished is a checker that is done when a channel is closed.
type finished struct {
	name string
	done <-chan struct{}
}

// Name returns what is being waited for.
func (f finished) Name() string { return f.name }

// Done returns the channel.
func (f finished) Done() <-chan struct{} { return f.done }

// namespaceMetadata returns an example of a namespace, cached as metadata only.
func namespaceMetadata() client.Object {
	alone := &metav1.PartialObjectMetadata{}
	alone.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	return alone
}

// nameOf returns the name of the object of an event.
func nameOf(object any) string {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return ""
	}
	return key
}
