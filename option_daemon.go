package einmal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/engine"
)

// Daemon declares a handler that runs in a goroutine of its own as long as its object exists, beside all other
// handlers. It has no timeout. It starts when this process first sees the object, or when the object starts to match
// its filters. Other handlers that are due run first, whether or not they succeed. A process runs one call at a time
// for an object and a daemon.
//
// The context is cancelled when the object is being deleted or gone, when it does not match the filters any more, when
// its kind is not served any more, and when the operator stops. context.Cause returns the reason: ErrObjectDeleted for
// the first two. The daemon must then return; what it returns is ignored. A finalizer keeps the object until the daemon
// has returned or was abandoned: see AbandonAfter and WithoutFinalizer.
//
// Changes of Object are written when the daemon returns, as for other handlers. To write and read in between, see
// Change.Sync.
//
// Delete handlers do not wait for daemons. Remove external resources in two places: in the daemon before it returns,
// and in a delete handler, which also runs after the process was killed.
//
// A daemon that returns nil, or fails permanently, has ended for this object. It starts again when the object matches
// its filters again, or when the operator restarts. After RequeueAfter, RetryAfter and other errors, it is called again
// after the delay, with the newest object. If a call ran longer than the longest backoff, attempts count from 1 again.
// Nothing is recorded. Old and Diff are empty.
func (k *Kind[T]) Daemon(id string, fn HandlerFunc[T], options ...DaemonOption) {
	declareWith(k, cause.Daemon, id, fn, options)
}

// StopGrace sets the time between the signal of Change.Stopping and the end of the daemon's context, so that the daemon
// can finish its work. When the operator stops, it is at most the ShutdownTimeout. By default, the context is cancelled
// at once.
func StopGrace(d time.Duration) DaemonOption {
	return option{name: "StopGrace", handler: func(settings *handlerSettings) error {
		if settings.stopGrace = max(d, 1); d < 0 {
			return fmt.Errorf("option StopGrace: must not be negative, got %s", d)
		}
		return nil
	}}
}

// AbandonAfter sets how long Einmal waits for a daemon after its context was cancelled. After that, the daemon is
// abandoned: the object can be deleted, the log and an event warn about it, and its later changes of Object are not
// written. The goroutine may still be running, because Go cannot stop it. Until it returns, the daemon is not started
// again for this object. By default, Einmal waits forever.
func AbandonAfter(d time.Duration) DaemonOption {
	return option{name: "AbandonAfter", handler: func(settings *handlerSettings) error {
		if settings.abandon = max(d, 1); d <= 0 {
			return fmt.Errorf("option AbandonAfter: must be positive, got %s; leave it out to wait without limit", d)
		}
		return nil
	}}
}

// Sync writes what a daemon has changed on Object since it started or since the last Sync, and waits until that is
// done. Only changed fields are written. Afterwards Object is a new copy, of the newest state that this process knows.
// If nothing was changed, Sync only reads from the cache.
//
// It waits until running handlers of the object return. It fails when ctx ends, when the operator stops, when the
// daemon may not change a field, or when the API server rejects the write. Changes that were not written stay on
// Object. Do not call it concurrently. In handlers that are not daemons, it returns an error.
func (c *Change[T]) Sync(ctx context.Context) error {
	if !c.driven { // A test calls the handler.
		return nil
	}
	if c.sync == nil {
		return errors.New("sync: only daemons can call it; changes of other handlers are written when they return")
	}
	return c.sync(ctx)
}

// Stopping returns a channel that is closed when a daemon should stop: StopGrace before its context is cancelled. For
// handlers that are not daemons it is nil, which blocks forever.
func (c *Change[T]) Stopping() <-chan struct{} { return c.stopping }

// keepUp gives a daemon its Sync and Stopping.
func (k *Kind[T]) keepUp(change *Change[T], call *engine.Call) {
	change.stopping = call.Stopping
	if call.Sync == nil {
		return
	}
	change.sync = func(ctx context.Context) error {
		left, err := change.left()
		if err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		newest, err := call.Sync(ctx, detached(left).(object.Body))
		if err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		copied, err := k.fromBody(newest)
		if err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		if call.Given, err = k.canonical(newest); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		change.Object = typed[T](copied)
		return nil
	}
}
