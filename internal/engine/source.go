package engine

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/objects"
)

// queue is what a source fills.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// informer feeds the queue from the shared informer of a kind, and lets go of the informer when it stops.
type informer struct {
	of *kindController
	// removed is called when other code removes the informer, listed when every object of the initial list is in the queue.
	removed      func()
	listed       func()
	registration toolscache.ResourceEventHandlerRegistration
}

// Start registers with the informer and returns at once.
func (e *informer) Start(ctx context.Context, to queue) error {
	e.of.queue = to
	shared, removed, err := e.of.informers.Get(ctx, e.of.kind.GVK, e.of.kind.New(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", e.of.kind.GVK, err)
	}
	go func() {
		select {
		case <-removed:
			e.removed()
		case <-ctx.Done():
		}
	}()
	e.of.state.Objects.BeginWatch()
	e.of.undecodables.begin(e.of.kind.GVK)
	e.of.store.SetNarrow(!kube.CachesAllNamespaces(ctx, e.of.cache, e.of.kind.New()))
	e.registration, err = shared.AddEventHandler(e.handlers(to))
	if err != nil {
		return fmt.Errorf("watch %s: %w", e.of.kind.GVK, err)
	}
	go e.promote(ctx)
	context.AfterFunc(ctx, func() {
		if err := shared.RemoveEventHandler(e.registration); err != nil {
			e.of.reports.Log.Debug("cannot remove the event handler of informer", "error", err)
		}
	})
	return nil
}

// handlers returns what feeds the queue. The cache can hold more namespaces than the operator serves.
func (e *informer) handlers(to queue) toolscache.ResourceEventHandler {
	return toolscache.FilteringResourceEventHandler{
		FilterFunc: func(object any) bool {
			key, ok := keyOf(object)
			return ok && e.of.settings.Serves(key.Namespace)
		},
		Handler: toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(added any, initial bool) {
				e.of.undecodables.follow(e.of.kind.GVK, added)
				existing := initial && !e.of.listedLater(added)
				if existing {
					e.of.noteExisting(added)
				} else {
					e.of.noteArrival(added)
				}
				if initial {
					e.of.noteListed(added)
				} else {
					e.of.noteEvent(objects.Added, added)
				}
				if existing {
					e.expect(to, added)
				} else {
					enqueue(to, added)
				}
			},
			UpdateFunc: func(before, after any) {
				if old, isObject := before.(client.Object); isObject && unchanged(old, after) {
					return
				}
				e.of.undecodables.follow(e.of.kind.GVK, after)
				e.of.noteReplaced(before, after)
				e.of.noteUpdate(before, after)
				enqueue(to, after)
			},
			DeleteFunc: func(deleted any) {
				e.of.undecodables.end(e.of.kind.GVK, deleted)
				e.of.noteDeparture(deleted)
				e.of.noteEvent(objects.Deleted, deleted)
				enqueue(to, deleted)
			},
		},
	}
}

// WaitForSync waits until every object of the initial list is in the queue.
func (e *informer) WaitForSync(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), e.registration.HasSynced) {
		return fmt.Errorf("wait for the initial list of %s: %w", e.of.kind.GVK.Kind, context.Cause(ctx))
	}
	e.of.catchUp()
	e.of.startup.End()
	e.listed()
	return nil
}

// expect puts an object of the initial list behind live changes.
func (e *informer) expect(to queue, object any) {
	key, found := keyOf(object)
	if !found {
		return
	}
	e.of.startup.Expect(key, created(object))
	request := reconcile.Request{NamespacedName: key}
	if prioritized, can := to.(priorityqueue.PriorityQueue[reconcile.Request]); can && !e.of.startup.Complete() {
		low := ctrlhandler.LowPriority
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, request)
		return
	}
	to.Add(request)
}

// promote raises waiting objects of the initial list to the priority of live changes, the longest waiting first and a few every
// second. Otherwise live changes alone could keep all workers busy forever.
func (e *informer) promote(ctx context.Context) {
	ticker := time.NewTicker(promoteEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		longest, more := e.of.startup.LongestWaiting(e.of.settings.Workers)
		for _, key := range longest {
			e.of.queue.Add(reconcile.Request{NamespacedName: key}) // mutant: starved-by-live-changes
		}
		if !more {
			return
		}
	}
}

func enqueue(to queue, object any) {
	if key, found := keyOf(object); found {
		to.Add(reconcile.Request{NamespacedName: key})
	}
}

func keyOf(object any) (types.NamespacedName, bool) {
	known, is := objectOf(object)
	if !is {
		return types.NamespacedName{}, false
	}
	return client.ObjectKeyFromObject(known), true
}

// objectOf is the object of an event; a deletion that the watch missed comes as a tombstone with the last known state.
func objectOf(object any) (client.Object, bool) {
	if tombstone, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = tombstone.Obj
	}
	known, is := object.(client.Object)
	return known, is
}

func created(object any) time.Time {
	known, is := objectOf(object)
	if !is {
		return time.Time{}
	}
	return known.GetCreationTimestamp().UTC()
}

func unchanged(before client.Object, after any) bool {
	now, is := after.(client.Object)
	return is && before.GetResourceVersion() == now.GetResourceVersion()
}
