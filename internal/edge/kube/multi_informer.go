package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// informerKey is a kind and how it is decoded.
type informerKey struct {
	kind     schema.GroupVersionKind
	decoding decoding
}

// multiInformer is the informer of a kind in all watched namespaces. The lock of NamespacedCache protects its fields.
type multiInformer struct {
	namespaced    *NamespacedCache
	example       client.Object
	resource      schema.GroupResource
	stopped       bool
	informers     map[*namespaceCache]cache.Informer
	registrations map[*multiRegistration]struct{}
	indexers      []toolscache.Indexers
}

var _ cache.Informer = (*multiInformer)(nil)

// enterLocked starts to watch a namespace.
func (m *multiInformer) enterLocked(ctx context.Context, where *namespaceCache) error {
	informer, err := where.cache.GetInformer(ctx, m.example, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s in namespace %s: %w", m.resource, where.namespace, err)
	}
	m.informers[where] = informer
	where.listing[m.resource] = false
	for _, by := range m.indexers {
		if err := informer.AddIndexers(by); err != nil {
			return fmt.Errorf("index %s in namespace %s: %w", m.resource, where.namespace, err)
		}
	}
	for registration := range m.registrations {
		if err := registration.enterLocked(where); err != nil {
			return err
		}
	}
	return nil
}

// leaveLocked forgets a namespace, and returns the trackers of what event handlers know about it.
func (m *multiInformer) leaveLocked(where *namespaceCache) []*deliveryTracker {
	delete(m.informers, where)
	var left []*deliveryTracker
	for registration := range m.registrations {
		if known, entered := registration.parts[where]; entered {
			left = append(left, known.tracker)
			delete(registration.parts, where)
		}
	}
	return left
}

// completeLocked reports whether something holds in every namespace in which the kind may be watched. It does not hold if the kind may
// not be watched in any namespace.
func (m *multiInformer) completeLocked(holds func(*namespaceCache) bool) bool {
	if !m.namespaced.namespacesKnown {
		return false
	}
	some, refused := false, false
	for _, where := range m.namespaced.caches {
		switch {
		case where.gone:
		case holds(where):
			some = true
		case where.refused[m.resource]:
			refused = true
		default:
			return false
		}
	}
	return some || !refused
}

// AddEventHandler adds an event handler, also in namespaces that appear later.
func (m *multiInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return m.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds an event handler that gets all objects periodically.
func (m *multiInformer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, resync time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return m.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions adds an event handler with options.
func (m *multiInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	added := &multiRegistration{of: m, handler: handler, options: options, parts: map[*namespaceCache]part{}}
	m.namespaced.mu.Lock()
	defer m.namespaced.mu.Unlock()
	m.registrations[added] = struct{}{}
	for where := range m.informers {
		if err := added.enterLocked(where); err != nil {
			return nil, err
		}
	}
	return added, nil
}

// RemoveEventHandler removes an event handler.
func (m *multiInformer) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	known, is := registration.(*multiRegistration)
	if !is {
		return errors.New("the registration belongs to another informer")
	}
	m.namespaced.mu.Lock()
	defer m.namespaced.mu.Unlock()
	delete(m.registrations, known)
	var failed error
	for where, each := range known.parts {
		failed = errors.Join(failed, m.informers[where].RemoveEventHandler(each.registration))
		delete(known.parts, where)
	}
	return failed
}

// AddIndexers adds indexers, also in namespaces that appear later.
func (m *multiInformer) AddIndexers(indexers toolscache.Indexers) error {
	m.namespaced.mu.Lock()
	defer m.namespaced.mu.Unlock()
	m.indexers = append(m.indexers, indexers)
	for where, informer := range m.informers {
		if err := informer.AddIndexers(indexers); err != nil {
			return fmt.Errorf("index %s in namespace %s: %w", m.resource, where.namespace, err)
		}
	}
	return nil
}

// HasSynced reports whether the lists of all namespaces that may be watched have arrived.
func (m *multiInformer) HasSynced() bool {
	m.namespaced.mu.Lock()
	defer m.namespaced.mu.Unlock()
	return m.completeLocked(func(where *namespaceCache) bool {
		informer, entered := m.informers[where]
		return entered && informer.HasSynced()
	})
}

// HasSyncedChecker is done when HasSynced is true or the cache has ended.
func (m *multiInformer) HasSyncedChecker() toolscache.DoneChecker {
	return m.namespaced.checker(m.resource.String(), m.HasSynced)
}

// IsStopped reports whether the kind is not watched any more.
func (m *multiInformer) IsStopped() bool {
	m.namespaced.mu.Lock()
	defer m.namespaced.mu.Unlock()
	select {
	case <-m.namespaced.over:
		return true
	default:
		return m.stopped
	}
}

// checker is done when something holds or the cache has ended.
func (s *NamespacedCache) checker(name string, holds func() bool) toolscache.DoneChecker {
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-s.started
		toolscache.WaitForCacheSync(s.ended(), holds)
	}()
	return finished{name, done}
}

// multiRegistration is an event handler in all namespaces. The lock of NamespacedCache protects its parts.
type multiRegistration struct {
	of      *multiInformer
	handler toolscache.ResourceEventHandler
	options toolscache.HandlerOptions
	parts   map[*namespaceCache]part
}

// part is an event handler in one namespace.
type part struct {
	registration toolscache.ResourceEventHandlerRegistration
	tracker      *deliveryTracker
}

func (r *multiRegistration) enterLocked(where *namespaceCache) error {
	begins := sync.OnceFunc(func() {
		r.of.namespaced.mu.Lock()
		defer r.of.namespaced.mu.Unlock()
		where.listing[r.of.resource] = true
	})
	counted := &deliveryTracker{to: r.handler, begins: begins, live: map[string]any{}}
	registration, err := r.of.informers[where].AddEventHandlerWithOptions(counted, r.options)
	if err != nil {
		return fmt.Errorf("add event handler for %s in namespace %s: %w", r.of.resource, where.namespace, err)
	}
	r.parts[where] = part{registration, counted}
	return nil
}

// HasSynced reports whether the event handler has received the lists of all namespaces that may be watched.
func (r *multiRegistration) HasSynced() bool {
	r.of.namespaced.mu.Lock()
	defer r.of.namespaced.mu.Unlock()
	return r.of.completeLocked(func(where *namespaceCache) bool {
		known, entered := r.parts[where]
		return entered && known.registration.HasSynced()
	})
}

// HasSyncedChecker is done when HasSynced is true or the cache has ended.
func (r *multiRegistration) HasSyncedChecker() toolscache.DoneChecker {
	return r.of.namespaced.checker(r.of.resource.String(), r.HasSynced)
}
