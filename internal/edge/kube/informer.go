package kube

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// NewInformer creates the informers of a cache, for cache.Options. They are those of client-go, except that a metadata watch leaves no
// goroutine behind. controller-runtime forwards the events of such a watch with watch.Filter, which blocks forever on an event that is
// in transit when the watch is stopped. The reader has to drain these events
// (https://github.com/kubernetes/kubernetes/pull/139321), and client-go's reflector does not.
func NewInformer(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	if _, metadata := example.(*metav1.PartialObjectMetadata); metadata {
		from = drain(toolscache.ToListerWatcherWithContext(from))
	}
	return toolscache.NewSharedIndexInformer(from, example, resync, by)
}

// drain makes the watches drain their events when they are stopped.
func drain(from toolscache.ListerWatcherWithContext) *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: from.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			begun, err := from.WatchWithContext(ctx, options)
			if err != nil {
				return nil, err //nolint:wrapcheck // client-go compares some errors by identity.
			}
			return &drained{Interface: begun}, nil
		},
	}
}

// drained is a watch that drains its own events after it was stopped, since its reader does not.
type drained struct {
	watch.Interface

	once sync.Once
}

// Stop stops the watch.
func (d *drained) Stop() {
	d.Interface.Stop()
	d.once.Do(func() {
		go func() {
			for range d.ResultChan() {
				continue
			}
		}()
	})
}
