package einmal

import (
	"errors"
	"time"

	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/engine"
)

// shortestRetry is the least time between two attempts of a handler that names the time itself.
const shortestRetry = 100 * time.Millisecond

// ErrObjectDeleted is the cause of a daemon's context when its object is being deleted, or is gone:
// errors.Is(context.Cause(ctx), einmal.ErrObjectDeleted).
var ErrObjectDeleted = engine.ErrObjectDeleted

// RetryAfter asks for another attempt after d. With an err the attempt has failed and is counted; with nil the handler
// only waits: no attempt is counted, and however often it waits it is written once. An edit of the object does not
// bring the attempt forward, but where a Reconcile only waits: it looks at once at what it has not seen. The shortest d is
// 100 milliseconds: a shorter one counts as that, so that a handler is not called as fast as the API server answers.
//
// Any other error is retried with back-off, a second first, doubled each time up to five minutes, shifted by up to a
// tenth, unless the handler's options Backoff and OnError say otherwise; an edit of what the handler looks at ends the
// wait. What a handler writes and the API server finds invalid is such an error; from the tenth attempt on it is final.
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
