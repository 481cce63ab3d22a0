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

// room is the cache of one namespace. Its fields belong to the Spaces.
type room struct {
	namespace string
	cache     cache.Cache
	// end ends the watches.
	end context.CancelFunc
	// gone: the namespace was deleted. appeared: it was created after the first list of namespaces.
	gone, appeared bool
	// refused are the kinds that may not be watched here, or might not be when it was last tried.
	refused map[schema.GroupResource]bool
}

func (s *Spaces) newRoom(name string) (*room, error) {
	opened := &room{namespace: name, refused: map[schema.GroupResource]bool{}}
	options := s.options
	options.DefaultNamespaces = map[string]cache.Config{name: {}}
	options.NewInformer = newMortal
	options.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
		s.mayNotWatch(opened, err)
		s.options.DefaultWatchErrorHandler(ctx, r, err)
	}
	var err error
	if opened.cache, err = cache.New(s.config, options); err != nil {
		return nil, fmt.Errorf("make the cache of namespace %s: %w", name, err)
	}
	return opened, nil
}

// mayNotWatch tells once that a kind is not served in a namespace.
func (s *Spaces) mayNotWatch(where *room, err error) {
	resource, refused := refusal(err)
	if !refused {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !where.refused[resource] {
		where.refused[resource] = true
		s.log.Warn("the namespace is not served for want of a right; it is tried again",
			"namespace", where.namespace, "resource", resource.String(), "error", err)
	}
}

// tally passes events on, and knows which objects there are.
type tally struct {
	to toolscache.ResourceEventHandler

	mu   sync.Mutex
	live map[string]any
}

// OnAdd notes a new object.
func (t *tally) OnAdd(added any, initial bool) {
	t.note(added)
	t.to.OnAdd(added, initial)
}

// OnUpdate notes the newest version of an object.
func (t *tally) OnUpdate(before, after any) {
	t.note(after)
	t.to.OnUpdate(before, after)
}

// OnDelete forgets an object.
func (t *tally) OnDelete(deleted any) {
	if key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(deleted); err == nil {
		t.mu.Lock()
		delete(t.live, key)
		t.mu.Unlock()
	}
	t.to.OnDelete(deleted)
}

func (t *tally) note(object any) {
	key, err := toolscache.MetaNamespaceKeyFunc(object)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.live[key] = object
}

// rest tells that all objects are gone whose deletion was not told.
func (t *tally) rest() {
	t.mu.Lock()
	live := t.live
	t.live = map[string]any{}
	t.mu.Unlock()
	for key, last := range live {
		t.to.OnDelete(toolscache.DeletedFinalStateUnknown{Key: key, Obj: last})
	}
}

// mortal is an informer for whose list nobody waits any more when it has ended. Without that, those who wait for a list that
// is refused would wait for ever.
type mortal struct {
	toolscache.SharedIndexInformer

	ended chan struct{}
}

func newMortal(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	return &mortal{SharedIndexInformer: NewInformer(from, example, resync, by), ended: make(chan struct{})}
}

// RunWithContext runs the informer.
func (m *mortal) RunWithContext(ctx context.Context) {
	defer close(m.ended)
	m.SharedIndexInformer.RunWithContext(ctx)
}

// HasSyncedChecker is done when the list is there, or the informer has ended.
func (m *mortal) HasSyncedChecker() toolscache.DoneChecker {
	return m.orEnded(m.SharedIndexInformer.HasSyncedChecker())
}

// AddEventHandler adds a handler.
func (m *mortal) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return m.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithOptions adds a handler.
func (m *mortal) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	registration, err := m.SharedIndexInformer.AddEventHandlerWithOptions(handler, options)
	if err != nil {
		return nil, fmt.Errorf("add a handler of events: %w", err)
	}
	return mortalRegistration{registration, m}, nil
}

// RemoveEventHandler removes a handler.
func (m *mortal) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	if known, is := registration.(mortalRegistration); is {
		registration = known.ResourceEventHandlerRegistration
	}
	if err := m.SharedIndexInformer.RemoveEventHandler(registration); err != nil {
		return fmt.Errorf("remove a handler of events: %w", err)
	}
	return nil
}

type mortalRegistration struct {
	toolscache.ResourceEventHandlerRegistration

	of *mortal
}

// HasSyncedChecker is done when the handler was told of the whole list, or the informer has ended.
func (r mortalRegistration) HasSyncedChecker() toolscache.DoneChecker {
	return r.of.orEnded(r.ResourceEventHandlerRegistration.HasSyncedChecker())
}

func (m *mortal) orEnded(checker toolscache.DoneChecker) toolscache.DoneChecker {
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

// Name names what is waited for.
func (f finished) Name() string { return f.name }

// Done is closed when it is done.
func (f finished) Done() <-chan struct{} { return f.done }

// namespaceAlone is an example of a namespace, cached as metadata alone.
func namespaceAlone() client.Object {
	alone := &metav1.PartialObjectMetadata{}
	alone.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	return alone
}

// nameOf is the name of the object of an event.
func nameOf(object any) string {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return ""
	}
	return key
}
