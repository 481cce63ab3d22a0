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

// Daemon declares a handler that runs beside all others as long as its object is there: it has a goroutine for each
// object, and no deadline. It starts when this process first sees the object, or the object begins to match its filters,
// after the other handlers that were due then, whether or not those have succeeded. Of one object and daemon there is one at
// a time in a process.
//
// Its context ends when the object is being deleted or gone, does not match its filters any more, when its kind is not served any
// more, or the operator stops; context.Cause tells which: it is ErrObjectDeleted for the first two. Then it has to return, and what it
// returns does not matter. A finalizer keeps the object until it has, or until it is abandoned (AbandonAfter); with Optional there is none.
// What it has changed on Object when it returns is written, as by other handlers; see Sync for what it reads and writes meanwhile.
//
// Delete handlers do not wait for it. Remove external resources twice: in the daemon before it returns, and in a delete handler, which also
// runs after the process was killed.
//
// When it returns by itself it has ended for this object: after nil, and after a failure that is final, it starts again
// when the object comes to match its filters again, or when the operator starts again. After RetryAfter and plain errors it
// is started again when their time has come, with the newest object. An attempt that has lasted longer than the longest back-off
// counts as the first one. There is neither Old nor Diff, and nothing of it is recorded.
func (k *Kind[T]) Daemon(id string, fn HandlerFunc[T], options ...Option) {
	k.declare(cause.Daemon, id, fn, options)
}

// StopGrace is an option of Daemon: the time between the word to stop, which Change.Stopping gives, and the end of the
// daemon's context, so that it can finish what it does. When the operator stops it is no longer than the option Grace. The default
// is none: the context ends at once.
func StopGrace(d time.Duration) Option {
	return Option{name: "StopGrace", handler: func(settings *handlerSettings) error {
		if settings.stopGrace = max(d, 1); d < 0 {
			return fmt.Errorf("option StopGrace: %s is below zero", d)
		}
		return nil
	}}
}

// AbandonAfter is an option of Daemon: how long after the end of its context nobody waits for it any more. Then its object is
// let go, and the log and an event warn of it; what it changes is not written any more. It still runs, as nobody can end a
// goroutine, and no other one is started for that object before it has returned. The default is to wait for ever.
func AbandonAfter(d time.Duration) Option {
	return Option{name: "AbandonAfter", handler: func(settings *handlerSettings) error {
		if settings.abandon = max(d, 1); d <= 0 {
			return fmt.Errorf("option AbandonAfter: %s leaves no time to return; leave the option out to wait for ever", d)
		}
		return nil
	}}
}

// Sync is for daemons: it writes what has been changed on Object since the daemon began or since the last Sync, only the
// touched fields, and waits until that is done. Then Object is another copy, of the newest state that this process knows.
// Where nothing was changed it only reads, from the cache. It is not to be called by several goroutines at a time.
//
// It waits for handlers of the object that run, and fails when the context ends, when the operator stops, when what was changed
// is not the daemon's to change, or when the API server does not accept it. What was not written then is on Object still.
// In other handlers it is an error.
func (c *Change[T]) Sync(ctx context.Context) error {
	if c.sync == nil {
		return errors.New("sync: it is for daemons; what other handlers change is written when they return")
	}
	return c.sync(ctx)
}

// Stopping is closed when a daemon is to stop: StopGrace before its context ends. In other handlers it is nil, which never
// yields.
func (c *Change[T]) Stopping() <-chan struct{} { return c.stopping }

// keepUp gives a daemon what it reads and writes with while it runs.
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
