package reconciler

import (
	"context"
	"errors"
	"time"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/declaration"
)

// errGraceOver is why the contexts of handlers end when the operator stops.
var errGraceOver = errors.New("the operator is stopping and its shutdown timeout has passed")

// detached is the context of a reconciliation and of what it saves: it ends with the stop margin, but at once where another replica
// may act. The contexts of handlers end before that: see attempting.
func (r *Reconciler) detached(parent context.Context) (context.Context, context.CancelFunc) {
	return r.outlasting(parent, r.Settings.Grace+declaration.StopMargin) // mutant: saved-in-the-stop-margin
}

// outlasting is a context that ends some time after another one, or at once where another replica may act.
func (r *Reconciler) outlasting(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	release := context.AfterFunc(parent, func() {
		if r.Lost() {
			cancel()
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		release()
		cancel()
	}
}

// attempting is the context of an attempt: it also ends when the grace period is over.
func (r *Reconciler) attempting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := context.AfterFunc(r.attempts, func() { cancel(errGraceOver) })
	return ctx, func() {
		release()
		cancel(nil)
	}
}

// interrupted reports whether an attempt returned since the grace period is over. It has not failed then, and does not count: a later
// process makes it again, with the steps that are done.
func (r *Reconciler) interrupted(run handler.Run, err error) bool {
	return run.Recorded() && r.attempts.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, errGraceOver))
}
