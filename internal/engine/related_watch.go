package engine

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// relatedWatch watches one kind for indexes and for handlers of other kinds. The indexes get each change first, so that handlers find them up
// to date.
type relatedWatch struct {
	follower *follower
	indexers []*indexer

	// mu guards the fields below.
	mu             sync.Mutex
	relatedSources []*relatedSource
	// waiting has a function for each object whose reconciliation waits until the indexes have seen the object.
	waiting map[types.NamespacedName]func()
}

// startRelatedWatches starts a watch of each kind that an index or a handler of another kind needs. Handlers wait for their first lists: see
// awaitRelated.
func (o *Operator) startRelatedWatches(ctx context.Context) {
	o.relatedWatches = map[schema.GroupVersionKind]*relatedWatch{}
	for _, watched := range o.watched() {
		w := &relatedWatch{}
		for _, index := range o.Indexes {
			if index.GVK == watched.GVK {
				w.indexers = append(w.indexers, newIndexer(o, index))
			}
		}
		w.follower = newFollower(o, watched, func(delivered change) { w.changed(ctx, delivered) })
		w.follower.vanished = w.clear
		o.relatedWatches[watched.GVK] = w
	}
	for _, w := range o.relatedWatches {
		go w.follower.follow(ctx)
	}
}

func (w *relatedWatch) changed(ctx context.Context, delivered change) {
	for _, x := range w.indexers {
		x.changed(ctx, delivered)
	}
	w.mu.Lock()
	woken := slices.Clone(w.relatedSources)
	for _, one := range delivered.objects() {
		key := client.ObjectKeyFromObject(one)
		if wake, waits := w.waiting[key]; waits {
			delete(w.waiting, key)
			wake()
		}
	}
	w.mu.Unlock()
	for _, r := range woken {
		r.wake(delivered)
	}
}

// clear removes all objects from the indexes.
func (w *relatedWatch) clear() {
	for _, x := range w.indexers {
		x.clear()
	}
}

// join sends changes to a source, until the context ends.
func (w *relatedWatch) join(ctx context.Context, r *relatedSource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relatedSources = append(w.relatedSources, r)
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.relatedSources = slices.DeleteFunc(w.relatedSources, func(other *relatedSource) bool { return other == r })
	})
}

// behind reports whether an index has not seen a version of an object yet.
func (w *relatedWatch) behind(key types.NamespacedName, version string) bool {
	return w != nil && w.follower.complete.Load() && slices.ContainsFunc(w.indexers, func(x *indexer) bool {
		seen := x.version(key)
		return seen == "" || kube.Older(seen, version)
	})
}

// awaits reports whether an index has not seen a version of an object yet. Then it calls wake once after the next event of the object.
func (w *relatedWatch) awaits(key types.NamespacedName, version string, wake func()) bool {
	if !w.behind(key, version) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.behind(key, version) { // The event has come in the meantime.
		return false
	}
	if w.waiting == nil {
		w.waiting = map[types.NamespacedName]func(){}
	}
	w.waiting[key] = wake
	return true
}

// awaitRelated waits until all indexes are complete, and until the cache has the first list of each kind that triggers handlers through the
// sources. No handler runs before.
func (o *Operator) awaitRelated(ctx context.Context, relatedSources []*relatedSource) error {
	for _, w := range o.relatedWatches {
		concerns := slices.ContainsFunc(relatedSources, func(r *relatedSource) bool { return r.relatedWatch == w })
		if len(w.indexers) == 0 && !concerns {
			continue
		}
		if err := w.follower.listed(ctx); err != nil {
			return err
		}
	}
	return nil
}
