package kube_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// late is a watch that has two more events in transit when it is stopped.
type late struct {
	events chan watch.Event
	once   sync.Once
}

// lateWatch returns one that has sent the end of an empty list.
func lateWatch() *late {
	l := &late{events: make(chan watch.Event, 1)}
	l.events <- watch.Event{Type: watch.Bookmark, Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}}
	return l
}

// ResultChan returns the events.
func (l *late) ResultChan() <-chan watch.Event { return l.events }

// Stop sends the events in transit, and then nothing more.
func (l *late) Stop() {
	l.once.Do(func() {
		go func() {
			defer close(l.events)
			for range 2 {
				l.events <- watch.Event{Type: watch.Added, Object: &metav1.PartialObjectMetadata{}}
			}
		}()
	})
}

// An event of metadata that is in transit when its informer stops does not leak a goroutine. controller-runtime forwards these events in
// the same way.
func TestAnEventForAnInformerThatHasStoppedIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told watch.Interface
		informer := kube.NewTolerance().NewInformer(&toolscache.ListWatch{
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				told = watch.Filter(lateWatch(), func(event watch.Event) (watch.Event, bool) { return event, true })
				return told, nil
			},
		}, &metav1.PartialObjectMetadata{}, 0, toolscache.Indexers{})
		ctx, stop := context.WithCancel(t.Context())
		go informer.RunWithContext(ctx)
		synctest.Wait()
		if !informer.HasSynced() {
			t.Fatal("the informer does not watch")
		}
		stop()
		synctest.Wait()
		for event := range told.ResultChan() {
			t.Errorf("%s of an object was not received", event.Type)
		}
	})
}
