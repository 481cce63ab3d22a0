package einmal

import (
	"errors"
	"time"

	"github.com/einmal-operators/einmal/internal/daemons"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
)

// shortestRetry is the least time between two attempts of a handler that names the time itself.
const shortestRetry = 100 * time.Millisecond

// ErrObjectDeleted is the cause of a daemon's context when its object is being deleted, or is gone:
// errors.Is(context.Cause(ctx), einmal.ErrObjectDeleted).
var ErrObjectDeleted = daemons.ErrObjectDeleted

// RequeueAfter calls the handler again after d, without a failure: the handler waits for something. No attempt is counted, and the wait is
// written once, however often it is repeated. An edit of the object does not shorten the wait, except for Reconcile, which looks at the
// edit at once. The shortest d is 100 milliseconds; a shorter one counts as that.
func RequeueAfter(d time.Duration) error {
	return &invoke.RetryAfterError{Delay: max(d, shortestRetry)}
}

// RetryAfter reports a failure that is retried after d instead of after the backoff. The attempt counts as failed. RetryAfter(d, nil) is
// RequeueAfter(d). The shortest d is 100 milliseconds; a shorter one counts as that.
//
// Any other error is retried with backoff: after one second, then doubled each time up to five minutes, shifted by up to a tenth, unless
// the options Backoff and OnError say otherwise. An edit of what the handler compares ends the wait. An object that the handler writes
// and the API server finds invalid is such an error; from the tenth attempt on it is final.
func RetryAfter(d time.Duration, err error) error {
	return &invoke.RetryAfterError{Delay: max(d, shortestRetry), Err: err} // mutant: shortest-retry
}

// Permanent says that no further attempt can help. The handler is not called again for this cause until what it looks
// at changes; other handlers go on. A delete handler that fails so keeps its object, unless it is declared with
// ReleaseOnFailure. Permanent(nil) is an error too.
func Permanent(err error) error {
	if err == nil {
		err = errors.New("failed for good, without a reason given")
	}
	return &invoke.PermanentError{Err: err}
}
