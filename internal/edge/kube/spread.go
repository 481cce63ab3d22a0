package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// spreadKey is a kind in the form in which it is decoded.
type spreadKey struct {
	kind     schema.GroupVersionKind
	decoding decoding
}

// spread is the informer of a kind in all namespaces that are watched. Its fields belong to the Spaces.
type spread struct {
	spaces        *Spaces
	example       client.Object
	resource      schema.GroupResource
	stopped       bool
	informers     map[*room]cache.Informer
	registrations map[*spreadRegistration]struct{}
	indexers      []toolscache.Indexers
}

var _ cache.Informer = (*spread)(nil)

// enterLocked begins to watch a namespace.
func (s *spread) enterLocked(ctx context.Context, where *room) error {
	informer, err := where.cache.GetInformer(ctx, s.example, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s in namespace %s: %w", s.resource, where.namespace, err)
	}
	s.informers[where] = informer
	for _, by := range s.indexers {
		if err := informer.AddIndexers(by); err != nil {
			return fmt.Errorf("index %s in namespace %s: %w", s.resource, where.namespace, err)
		}
	}
	for registration := range s.registrations {
		if err := registration.enterLocked(where); err != nil {
			return err
		}
	}
	return nil
}

// leaveLocked forgets a namespace, and returns what its followers were told.
func (s *spread) leaveLocked(where *room) []*tally {
	delete(s.informers, where)
	var left []*tally
	for registration := range s.registrations {
		if known, entered := registration.parts[where]; entered {
			left = append(left, known.tally)
			delete(registration.parts, where)
		}
	}
	return left
}

// completeLocked tells whether something holds in every namespace that is watched and may be. Where no namespace may be
// watched, it does not.
func (s *spread) completeLocked(holds func(*room) bool) bool {
	if !s.spaces.surveyed {
		return false
	}
	some, refused := false, false
	for _, where := range s.spaces.rooms {
		switch {
		case where.gone:
		case holds(where):
			some = true
		case where.refused[s.resource]:
			refused = true
		default:
			return false
		}
	}
	return some || !refused
}

// AddEventHandler adds a handler, in namespaces that appear later too.
func (s *spread) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler that is told of all objects from time to time.
func (s *spread) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, resync time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: &resync})
}

// AddEventHandlerWithOptions adds a handler with options.
func (s *spread) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	added := &spreadRegistration{of: s, handler: handler, options: options, parts: map[*room]part{}}
	s.spaces.mu.Lock()
	defer s.spaces.mu.Unlock()
	s.registrations[added] = struct{}{}
	for where := range s.informers {
		if err := added.enterLocked(where); err != nil {
			return nil, err
		}
	}
	return added, nil
}

// RemoveEventHandler removes a handler.
func (s *spread) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	known, is := registration.(*spreadRegistration)
	if !is {
		return errors.New("the registration is not of this informer")
	}
	s.spaces.mu.Lock()
	defer s.spaces.mu.Unlock()
	delete(s.registrations, known)
	var failed error
	for where, each := range known.parts {
		failed = errors.Join(failed, s.informers[where].RemoveEventHandler(each.registration))
		delete(known.parts, where)
	}
	return failed
}

// AddIndexers adds indexers, in namespaces that appear later too.
func (s *spread) AddIndexers(indexers toolscache.Indexers) error {
	s.spaces.mu.Lock()
	defer s.spaces.mu.Unlock()
	s.indexers = append(s.indexers, indexers)
	for where, informer := range s.informers {
		if err := informer.AddIndexers(indexers); err != nil {
			return fmt.Errorf("index %s in namespace %s: %w", s.resource, where.namespace, err)
		}
	}
	return nil
}

// HasSynced tells whether the lists of all namespaces that may be watched are there.
func (s *spread) HasSynced() bool {
	s.spaces.mu.Lock()
	defer s.spaces.mu.Unlock()
	return s.completeLocked(func(where *room) bool {
		informer, entered := s.informers[where]
		return entered && informer.HasSynced()
	})
}

// HasSyncedChecker is done when HasSynced is true, or the cache has ended.
func (s *spread) HasSyncedChecker() toolscache.DoneChecker {
	return s.spaces.checker(s.resource.String(), s.HasSynced)
}

// IsStopped tells whether nothing is watched any more.
func (s *spread) IsStopped() bool {
	s.spaces.mu.Lock()
	defer s.spaces.mu.Unlock()
	select {
	case <-s.spaces.over:
		return true
	default:
		return s.stopped
	}
}

// checker is done when something holds, or the cache has ended.
func (s *Spaces) checker(name string, holds func() bool) toolscache.DoneChecker {
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-s.started
		toolscache.WaitForCacheSync(s.ended(), holds)
	}()
	return finished{name, done}
}

// spreadRegistration is a handler in all namespaces. Its parts belong to the Spaces.
type spreadRegistration struct {
	of      *spread
	handler toolscache.ResourceEventHandler
	options toolscache.HandlerOptions
	parts   map[*room]part
}

// part is a handler in one namespace.
type part struct {
	registration toolscache.ResourceEventHandlerRegistration
	tally        *tally
}

func (r *spreadRegistration) enterLocked(where *room) error {
	counted := &tally{to: r.handler, live: map[string]any{}}
	registration, err := r.of.informers[where].AddEventHandlerWithOptions(counted, r.options)
	if err != nil {
		return fmt.Errorf("follow %s in namespace %s: %w", r.of.resource, where.namespace, err)
	}
	r.parts[where] = part{registration, counted}
	return nil
}

// HasSynced tells whether the handler was told of the lists of all namespaces that may be watched.
func (r *spreadRegistration) HasSynced() bool {
	r.of.spaces.mu.Lock()
	defer r.of.spaces.mu.Unlock()
	return r.of.completeLocked(func(where *room) bool {
		known, entered := r.parts[where]
		return entered && known.registration.HasSynced()
	})
}

// HasSyncedChecker is done when HasSynced is true, or the cache has ended.
func (r *spreadRegistration) HasSyncedChecker() toolscache.DoneChecker {
	return r.of.spaces.checker(r.of.resource.String(), r.HasSynced)
}
