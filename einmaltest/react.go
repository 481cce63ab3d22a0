package einmaltest

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// React plays a controller that the world does not have, such as the one that provides volumes: from now on do is called
// with each object of the list's type that is there or comes, and each time that one has changed, until the world ends. The
// calls come one after the other. What it writes is not disturbed.
func (w *World) React(list client.ObjectList, do func(object client.Object)) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	opened, err := w.begun().User.Watch(ctx, list)
	if err != nil {
		cancel()
		w.Fatalf("watch %T: %v", list, err)
	}
	stop := w.stop
	w.stop = func() {
		cancel()
		stop()
	}
	w.reacting.Go(func() {
		for err == nil {
			react(ctx, opened, do)
			if ctx.Err() != nil {
				return
			}
			opened, err = w.begun().User.Watch(ctx, list) // It ended, as all watches do when a cluster is restored.
		}
		if ctx.Err() == nil {
			w.Errorf("watch %T: %v", list, err)
		}
	})
}

// react calls do for the events of one watch.
func react(ctx context.Context, opened watch.Interface, do func(client.Object)) {
	defer opened.Stop()
	for event := range opened.ResultChan() {
		object, is := event.Object.(client.Object)
		if is && (event.Type == watch.Added || event.Type == watch.Modified) && ctx.Err() == nil {
			do(object)
		}
	}
}
