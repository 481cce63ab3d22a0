package kindloop

import (
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Informers are the informers of a cache. Several users can share one: who uses it learns when another one removes it, and when any watch of the cache fails.
// All methods can be called by several goroutines at the same time.
type Informers struct {
	Cache cache.Cache

	// mu guards the fields below.
	mu        sync.Mutex
	removed   map[informerKey]chan struct{}
	listeners map[chan struct{}]struct{}
}

// informerKey is one form in which a kind is cached.
type informerKey struct {
	kind schema.GroupVersionKind
	form reflect.Type
}

// Get returns the informer of a kind in the form of an empty object, and a channel that is closed when it is removed. The options are those
// of the cache.
func (i *Informers) Get(ctx context.Context, kind schema.GroupVersionKind, empty client.Object, options ...cache.InformerGetOption) (cache.Informer, <-chan struct{}, error) {
	for {
		removed := i.removal(kind, empty, false)
		found, err := i.Cache.GetInformer(ctx, empty, options...)
		if err != nil {
			return nil, nil, err //nolint:wrapcheck // It names the kind.
		}
		select {
		case <-removed: // It may be the one that was removed.
		default:
			return found, removed, nil
		}
	}
}

// Remove removes the informer of a kind, and closes the channels that Get has returned for it.
func (i *Informers) Remove(ctx context.Context, kind schema.GroupVersionKind, empty client.Object) error {
	err := i.Cache.RemoveInformer(ctx, empty)
	close(i.removal(kind, empty, true))
	return err //nolint:wrapcheck // It names the kind.
}

// removal returns the channel that is closed when the informer is removed. With forget, the next call returns another one.
func (i *Informers) removal(kind schema.GroupVersionKind, empty client.Object, forget bool) chan struct{} { //nolint:revive // It saves a copy of the lookup.
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.removed == nil {
		i.removed = map[informerKey]chan struct{}{}
	}
	key := informerKey{kind, reflect.TypeOf(empty)}
	removed := i.removed[key]
	if removed == nil {
		removed = make(chan struct{})
		i.removed[key] = removed
	}
	if forget {
		delete(i.removed, key)
	}
	return removed
}

// WatchFailed wakes the listeners. A cache calls it when it cannot list or watch a kind, which it then tries again. It logs
// the error, unless it was reported already.
func (i *Informers) WatchFailed(ctx context.Context, reflector *toolscache.Reflector, err error, reported bool) { //nolint:revive // What was reported is not logged again.
	if !reported {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for listener := range i.listeners {
		select {
		case listener <- struct{}{}:
		default: // It has not heard the one before yet.
		}
	}
}

// Listen returns a channel that yields after a watch was in trouble, until the end is called.
func (i *Informers) Listen() (heard <-chan struct{}, end func()) {
	listener := make(chan struct{}, 1)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.listeners == nil {
		i.listeners = map[chan struct{}]struct{}{}
	}
	i.listeners[listener] = struct{}{}
	return listener, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		delete(i.listeners, listener)
	}
}
