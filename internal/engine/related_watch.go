package engine

import (
	"context"
	"maps"
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
	// indexed has the versions of the objects that the indexes have seen.
	indexed map[types.NamespacedName]string
	// waiting has a function for each object whose reconciliation waits until the indexes have seen the object.
	waiting map[types.NamespacedName]func()
}

// startRelatedWatches starts a watch of each kind that an index or a handler of another kind needs. Handlers wait for their first lists: see
// awaitRelated.
func (o *Operator) startRelatedWatches(ctx context.Context) {
	o.relatedWatches = map[schema.GroupVersionKind]*relatedWatch{}
	for _, watched := range o.watched() {
		w := &relatedWatch{indexed: map[types.NamespacedName]string{}, waiting: map[types.NamespacedName]func(){}}
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
	for _, r := range w.seen(delivered) {
		r.wake(delivered)
	}
}

// seen notes what the indexes have seen, and wakes the objects that waited for it. It returns the sources that the change concerns.
func (w *relatedWatch) seen(delivered change) []*relatedSource {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range delivered.objects() {
		key := client.ObjectKeyFromObject(one)
		if len(w.indexers) > 0 && one == delivered.after {
			w.indexed[key] = one.GetResourceVersion()
		} else {
			delete(w.indexed, key)
		}
		if wake, waits := w.waiting[key]; waits {
			delete(w.waiting, key)
			wake()
		}
	}
	return slices.Clone(w.relatedSources)
}

// clear removes all objects from the indexes.
func (w *relatedWatch) clear() {
	w.mu.Lock()
	known := slices.Collect(maps.Keys(w.indexed))
	clear(w.indexed)
	w.mu.Unlock()
	for _, x := range w.indexers {
		x.clear(known)
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

// awaits reports whether an index has not seen a version of an object yet. Then it calls wake once after the next event of the object.
func (w *relatedWatch) awaits(key types.NamespacedName, version string, wake func()) bool {
	if w == nil || len(w.indexers) == 0 || !w.follower.complete.Load() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen := w.indexed[key]; seen != "" && !kube.Older(seen, version) {
		return false
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
