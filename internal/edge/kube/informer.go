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

// NewInformer makes the informers of a cache, as cache.Options want it: those of client-go, but that a watch of metadata leaves no
// goroutine behind. controller-runtime hands the events of such a watch on with watch.Filter, which waits for ever for somebody to
// take an event that is on its way when the watch is stopped; to take them is left to the reader
// (https://github.com/kubernetes/kubernetes/pull/139321), and client-go's reflector does not.
func NewInformer(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	if _, metadata := example.(*metav1.PartialObjectMetadata); metadata {
		from = drain(toolscache.ToListerWatcherWithContext(from))
	}
	return toolscache.NewSharedIndexInformer(from, example, resync, by)
}

// drain drains the watches when they are stopped.
func drain(from toolscache.ListerWatcherWithContext) *toolscache.ListWatch {
	return &toolscache.ListWatch{
		ListWithContextFunc: from.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			begun, err := from.WatchWithContext(ctx, options)
			if err != nil {
				return nil, err //nolint:wrapcheck // client-go compares some by identity.
			}
			return &drained{Interface: begun}, nil
		},
	}
}

// drained is a watch whose events are taken until its end when it is stopped, since its reader does not any more.
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
				continue // It is for nobody.
			}
		}()
	})
}
