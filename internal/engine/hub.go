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

// hub follows one kind for all whom its objects concern: the indexes first, so that who is woken finds them up to date.
type hub struct {
	*follower

	indexers  []*indexer
	mu        sync.Mutex
	relatives []*relative
	// waiting are the passes that wait until the indexes have seen an object.
	waiting map[types.NamespacedName]func()
}

// startHubs begins to follow every kind that is watched for the sake of others. Handlers wait for them: see awaitRelated.
func (o *Operator) startHubs(ctx context.Context) {
	o.hubs = map[schema.GroupVersionKind]*hub{}
	for _, watched := range o.watched() {
		h := &hub{}
		for _, index := range o.Indexes {
			if index.GVK == watched.GVK {
				h.indexers = append(h.indexers, newIndexer(o, index))
			}
		}
		h.follower = newFollower(o, watched, func(told change) { h.changed(ctx, told) })
		h.vanished = h.clear
		o.hubs[watched.GVK] = h
	}
	for _, h := range o.hubs {
		go h.follow(ctx)
	}
}

func (h *hub) changed(ctx context.Context, told change) {
	for _, x := range h.indexers {
		x.changed(ctx, told)
	}
	h.mu.Lock()
	woken := slices.Clone(h.relatives)
	for _, one := range told.objects() {
		key := client.ObjectKeyFromObject(one)
		if wake, waits := h.waiting[key]; waits {
			delete(h.waiting, key)
			wake()
		}
	}
	h.mu.Unlock()
	for _, r := range woken {
		r.wake(told)
	}
}

// clear takes all objects out of the indexes.
func (h *hub) clear() {
	for _, x := range h.indexers {
		x.clear()
	}
}

// handles reports whether the kind is handled.
func (o *Operator) handles(kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(o.Kinds, func(handled Kind) bool { return handled.GVK == kind })
}

// join sends changes to a relative, until the context ends.
func (h *hub) join(ctx context.Context, r *relative) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.relatives = append(h.relatives, r)
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.relatives = slices.DeleteFunc(h.relatives, func(other *relative) bool { return other == r })
	})
}

// behind reports whether an index has not seen a version of an object yet, which it will in a moment.
func (h *hub) behind(key types.NamespacedName, version string) bool {
	return h != nil && h.complete.Load() && slices.ContainsFunc(h.indexers, func(x *indexer) bool {
		seen := x.version(key)
		return seen == "" || kube.Older(seen, version)
	})
}

// awaits reports whether an index has not seen a version of an object yet. Then it calls wake once after the next event of the object.
func (h *hub) awaits(key types.NamespacedName, version string, wake func()) bool {
	if !h.behind(key, version) {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.behind(key, version) { // The event has come in the meantime.
		return false
	}
	if h.waiting == nil {
		h.waiting = map[types.NamespacedName]func(){}
	}
	h.waiting[key] = wake
	return true
}

// awaitRelated waits until all indexes are complete, and until the cache holds what wakes the handlers of a kind: no handler runs
// before, and nothing is asked of the API server for its sake.
func (o *Operator) awaitRelated(ctx context.Context, relatives []*relative) error {
	for _, h := range o.hubs {
		concerns := slices.ContainsFunc(relatives, func(r *relative) bool { return r.hub == h })
		if len(h.indexers) == 0 && !concerns {
			continue
		}
		if err := h.listed(ctx); err != nil {
			return err
		}
	}
	return nil
}
