package einmal

import (
	"errors"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/internal/core/handler"
)

// ErrorPolicy is what an error of a handler means that is neither of RetryAfter nor of Permanent; a panic is such an
// error too.
type ErrorPolicy handler.OnError

// The policies. Retry is the default: the handler is tried again after a back-off. With Fail such an error is final, as
// one of Permanent. With Ignore it counts as success, and the log warns of it.
const (
	Retry  = ErrorPolicy(handler.Retry)
	Fail   = ErrorPolicy(handler.Fail)
	Ignore = ErrorPolicy(handler.Ignore)
)

// OnError is an option of a handler: what an error means that is neither of RetryAfter nor of Permanent. The default is
// Retry.
func OnError(policy ErrorPolicy) Option {
	return Option{name: "OnError", handler: func(settings *handlerSettings) error {
		if policy < Retry || policy > Ignore {
			return fmt.Errorf("option OnError: %d is no policy; use Retry, Fail or Ignore", policy)
		}
		settings.retries.limits.OnError = handler.OnError(policy)
		return nil
	}}
}

// MaxAttempts is an option of a handler: how many attempts are made at most for one cause, across restarts; the failure of
// the last is final. Waiting with RetryAfter(d, nil) is no attempt. When what the handler looks at changes after that,
// it is counted from 1 again. The default is without end.
func MaxAttempts(n int) Option {
	return Option{name: "MaxAttempts", handler: func(settings *handlerSettings) error {
		if n < 1 {
			return fmt.Errorf("option MaxAttempts: %d is no number of attempts, give at least 1", n)
		}
		settings.retries.limits.MaxAttempts = n
		return nil
	}}
}

// Timeout is an option of a handler: no attempt starts later than d after the first one for the same cause, across
// restarts, and waiting counts. Where the next attempt would be later, the failure is final at once, or when the operator
// looks at the object again. An attempt that runs is not ended by it: see Deadline. When what the handler looks at
// changes after that, time begins anew. The default is without end.
func Timeout(d time.Duration) Option {
	return Option{name: "Timeout", handler: func(settings *handlerSettings) error {
		if d <= 0 {
			return fmt.Errorf("option Timeout: %s leaves no time for attempts", d)
		}
		settings.retries.limits.Timeout = d
		return nil
	}}
}

// Backoff is an option of a handler: how long it waits after an error that is neither of RetryAfter nor of Permanent:
// first after the first attempt, then twice as long each time, up to most, each shifted by up to a tenth. The default is
// from a second to five minutes.
func Backoff(first, most time.Duration) Option {
	return Option{name: "Backoff", handler: func(settings *handlerSettings) error {
		if first <= 0 || most < first {
			return fmt.Errorf("option Backoff: from %s to %s is no back-off; the first is above zero, and the longest no shorter", first, most)
		}
		settings.retries.limits.FirstBackoff, settings.retries.limits.LongestBackoff = first, most
		return nil
	}}
}

// FormerlyKnownAs is an option of a handler: ids that it had in earlier releases. What is recorded under them, such as
// attempts that were made and creations that are open, goes on under the new id, and after a roll-back under the old one. Keep the
// option until every object has
// been written since; an old id that is declared again, or by two handlers, is a registration mistake.
func FormerlyKnownAs(ids ...string) Option {
	return Option{name: "FormerlyKnownAs", handler: func(settings *handlerSettings) error {
		if len(ids) == 0 {
			return errors.New("option FormerlyKnownAs: name the ids that the handler had")
		}
		settings.retries.former = append(settings.retries.former, ids...)
		return nil
	}}
}

// ReleaseOnFailure is an option of OnDelete: when the handler fails for good, its object is deleted all the same, and what
// the handler should have taken back is left. By default such an object stays, with the condition DeletionBlocked where
// its status has conditions, until the object changes, so that the handler runs again, or a person sets the annotation
// <identity>/release to the handler's id, or to * for all that fail.
func ReleaseOnFailure() Option {
	return Option{name: "ReleaseOnFailure", handler: func(settings *handlerSettings) error {
		settings.retries.releases = true
		return nil
	}}
}

// retrySettings are what the options of this file set.
type retrySettings struct {
	limits   handler.Limits
	former   []string
	releases bool
}

// into enters the settings into the declaration of a handler.
func (s retrySettings) into(declared *handler.Declaration) {
	declared.Limits, declared.Former, declared.Releases = s.limits, s.former, s.releases
}
