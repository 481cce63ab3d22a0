package kindloop

import (
	"context"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
)

// WatchErrors signals to all listeners that a watch has failed, whichever it is.
type WatchErrors struct {
	// mu guards listeners.
	mu        sync.Mutex
	listeners map[chan struct{}]struct{}
}

// WatchFailed wakes the listeners. A cache calls it when it cannot list or watch a kind, which it then tries again. It logs
// the error, unless it was reported already.
func (a *WatchErrors) WatchFailed(ctx context.Context, reflector *toolscache.Reflector, err error, reported bool) { //nolint:revive // What was reported is not logged again.
	if !reported {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for listener := range a.listeners {
		select {
		case listener <- struct{}{}:
		default: // It has not heard the one before yet.
		}
	}
}

// Listen returns a channel that yields after a watch was in trouble, until the end is called.
func (a *WatchErrors) Listen() (heard <-chan struct{}, end func()) {
	listener := make(chan struct{}, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listeners == nil {
		a.listeners = map[chan struct{}]struct{}{}
	}
	a.listeners[listener] = struct{}{}
	return listener, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.listeners, listener)
	}
}
