package kindloop

import (
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Informers are the informers of a cache. Several users can share one: who uses it learns when another one removes it. All methods can be called by several
// goroutines at the same time.
type Informers struct {
	Cache cache.Cache

	// mu guards removed.
	mu      sync.Mutex
	removed map[informerKey]chan struct{}
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
