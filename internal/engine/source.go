package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	ctrlhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is what a source fills.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// informer feeds the queue from the shared informer of a kind, and lets go of the informer when it stops.
type informer struct {
	keeper *keeper
	// listed is called when every object of the initial list is in the queue.
	listed       func()
	registration toolscache.ResourceEventHandlerRegistration
}

// Start registers with the informer and returns at once.
func (e *informer) Start(ctx context.Context, to queue) error {
	e.keeper.queue = to
	shared, err := e.keeper.cache.GetInformer(ctx, e.keeper.kind.New(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", e.keeper.kind.GVK, err)
	}
	e.keeper.lately.begin(shared)
	e.registration, err = shared.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(added any, initial bool) {
			if initial {
				e.keeper.noteListed(added)
				e.expect(to, added)
			} else {
				e.keeper.noteEvent(Added, added)
				enqueue(to, added)
			}
		},
		UpdateFunc: func(before, after any) {
			if old, isObject := before.(client.Object); isObject && unchanged(old, after) {
				return
			}
			e.keeper.noteUpdate(before, after)
			enqueue(to, after)
		},
		DeleteFunc: func(deleted any) {
			e.keeper.noteEvent(Deleted, deleted)
			enqueue(to, deleted)
		},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", e.keeper.kind.GVK, err)
	}
	context.AfterFunc(ctx, func() {
		if err := shared.RemoveEventHandler(e.registration); err != nil {
			e.keeper.log.Debug("letting go of the informer", "error", err)
		}
	})
	return nil
}

// WaitForSync waits until every object of the initial list is in the queue.
func (e *informer) WaitForSync(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), e.registration.HasSynced) {
		return fmt.Errorf("the list of %s did not arrive: %w", e.keeper.kind.GVK.Kind, context.Cause(ctx))
	}
	e.keeper.catchUp()
	e.keeper.startup.listed()
	e.listed()
	return nil
}

// expect puts an object of the initial list behind live changes.
func (e *informer) expect(to queue, object any) {
	key, found := keyOf(object)
	if !found {
		return
	}
	e.keeper.startup.expect(key, created(object))
	request := reconcile.Request{NamespacedName: key}
	if prioritized, can := to.(priorityqueue.PriorityQueue[reconcile.Request]); can {
		low := ctrlhandler.LowPriority
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: &low}, request)
		return
	}
	to.Add(request)
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

// startup counts the objects that were there when the operator started, to say once what became of them.
type startup struct {
	log      *slog.Logger
	mu       sync.Mutex
	complete bool
	told     bool
	waiting  map[types.NamespacedName]bool
	total    int
	handled  int
	// newest is when the newest of them was created.
	newest time.Time
}

func (s *startup) expect(key types.NamespacedName, created time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if created.After(s.newest) {
		s.newest = created
	}
	if s.waiting == nil {
		s.waiting = map[types.NamespacedName]bool{}
	}
	if !s.told && !s.waiting[key] {
		s.waiting[key] = true
		s.total++
	}
}

// invoked notes that a handler ran for an object.
func (s *startup) invoked(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[key] {
		s.waiting[key] = false
		s.handled++
	}
}

func (s *startup) passed(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, key)
	s.tell()
}

// over tells whether every object of the initial list has had its first pass.
func (s *startup) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told
}

// inherited tells whether the object was there when the operator started and has not had its first pass.
func (s *startup) inherited(key types.NamespacedName) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, waiting := s.waiting[key]
	return waiting
}

// predates tells whether an object that was created then may have been there when the operator started.
func (s *startup) predates(created time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !created.After(s.newest)
}

func (s *startup) listed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete = true
	s.tell()
}

func (s *startup) tell() {
	if s.told || !s.complete || len(s.waiting) > 0 {
		return
	}
	s.told, s.waiting = true, nil
	switch {
	case s.total == 0:
		s.log.Info("no objects yet; watching")
	case s.handled == 0:
		s.log.Info("nothing to do: all objects are as they were left; watching", "objects", s.total)
	default:
		s.log.Info("caught up with the objects that were there; watching", "objects", s.total, "handled", s.handled)
	}
}
