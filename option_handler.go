package einmal

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/declaration"
)

// AttemptTimeout sets how long one attempt of a handler may take before its context ends. The default is ten minutes. A handler that
// ignores its context is logged when the timeout has passed, and blocks its object until it returns. To set the timeout for all
// handlers, including those of OnEvent, OnStartup and OnCleanup, give it to HandlerDefaults. A daemon has no timeout.
func AttemptTimeout(d time.Duration) HandlerOption {
	return option{name: "AttemptTimeout", handler: func(settings *handlerSettings) error {
		if d <= 0 {
			return fmt.Errorf("option AttemptTimeout: must be positive, got %s", d)
		}
		settings.attemptTimeout = d
		return nil
	}}
}

// HandlerDefaults sets options that every handler gets before its own ones. MaxAttempts, RetryFor and OnError do not apply to delete handlers,
// whose final failure would block the deletion: give these options to a delete handler itself. Of the retry options none applies to
// OnEvent, and AttemptTimeout does not apply to daemons.
func HandlerDefaults(options ...HandlerOption) OperatorOption {
	return option{name: "HandlerDefaults", operator: func(op *Operator) error {
		known, err := optionsOf(options)
		if err != nil {
			return fmt.Errorf("option HandlerDefaults: %w", err)
		}
		var settings handlerSettings
		for _, one := range known {
			if one.name == "OwnsStatus" {
				return errors.New("option HandlerDefaults: OwnsStatus gives fields to one handler: give it to that handler")
			}
			if one.build != nil || one.operator != nil {
				continue
			}
			if err := one.handler(&settings); err != nil {
				return fmt.Errorf("option HandlerDefaults: %w", err)
			}
		}
		op.defaults = append(op.defaults, known...)
		op.settings.AttemptTimeout = cmp.Or(settings.attemptTimeout, op.settings.AttemptTimeout)
		return nil
	}}
}

// defaulted drops those defaults that do not apply to a verb.
func (s *handlerSettings) defaulted(verb cause.Cause) {
	switch verb { //nolint:exhaustive // All defaults apply to the others.
	case cause.Delete:
		s.retries.limits.MaxAttempts, s.retries.limits.Timeout, s.retries.limits.OnError = 0, 0, handler.Retry
	case cause.Daemon:
		s.attemptTimeout = 0
	case declaration.Event:
		s.retries = retrySettings{}
	}
}

// ErrorPolicy defines how errors of a handler are treated that come neither from RetryAfter nor from Permanent. Panics
// are such errors.
type ErrorPolicy handler.OnError

// The error policies.
const (
	PolicyRetry  = ErrorPolicy(handler.Retry)  // the default: the handler is called again after a backoff
	PolicyFail   = ErrorPolicy(handler.Fail)   // the error is final, as if it came from Permanent
	PolicyIgnore = ErrorPolicy(handler.Ignore) // the error is logged as a warning and counts as success
)

// OnError sets how errors are treated that come neither from RetryAfter nor from Permanent. The default is PolicyRetry.
func OnError(policy ErrorPolicy) RetryOption {
	return option{name: "OnError", handler: func(settings *handlerSettings) error {
		if policy < PolicyRetry || policy > PolicyIgnore {
			return fmt.Errorf("option OnError: unknown policy %d; use PolicyRetry, PolicyFail or PolicyIgnore", policy)
		}
		settings.retries.limits.OnError = handler.OnError(policy)
		return nil
	}}
}

// MaxAttempts limits the attempts for one cause, across restarts: the failure of the last attempt is final. Waiting
// with RequeueAfter does not count. After a final failure, attempts count from 1 again when what the handler compares
// changes. The default is no limit.
func MaxAttempts(n int) RetryOption {
	return option{name: "MaxAttempts", handler: func(settings *handlerSettings) error {
		if n < 1 {
			return fmt.Errorf("option MaxAttempts: must be at least 1, got %d", n)
		}
		settings.retries.limits.MaxAttempts = n
		return nil
	}}
}

// RetryFor limits how long a handler is retried: no attempt starts later than d after the first one for the same cause,
// across restarts. Waiting with RequeueAfter counts. If the next attempt would start later, the failure is final at
// once. RetryFor does not end a running attempt: see AttemptTimeout. After a final failure, the time starts again when
// what the handler compares changes. The default is no limit.
func RetryFor(d time.Duration) RetryOption {
	return option{name: "RetryFor", handler: func(settings *handlerSettings) error {
		if d <= 0 {
			return fmt.Errorf("option RetryFor: must be positive, got %s", d)
		}
		settings.retries.limits.Timeout = d
		return nil
	}}
}

// Backoff sets the delay after an error that comes neither from RetryAfter nor from Permanent. It is initial after the
// first attempt, and doubles each time up to longest. Each delay is shifted by up to a tenth. The default is one
// second to five minutes.
func Backoff(initial, longest time.Duration) RetryOption {
	return option{name: "Backoff", handler: func(settings *handlerSettings) error {
		if initial <= 0 || longest < initial {
			return fmt.Errorf("option Backoff: initial must be positive and at most longest, got %s and %s", initial, longest)
		}
		settings.retries.limits.FirstBackoff, settings.retries.limits.LongestBackoff = initial, longest
		return nil
	}}
}

// FormerlyKnownAs lists ids that the handler had in earlier releases. What is recorded under them, such as attempts and
// unfinished creations, continues under the new id, and after a rollback under the old one. Keep the option until every
// object has been written since the rename. Run returns an error for an old id that another handler has, or that two
// handlers list.
func FormerlyKnownAs(ids ...string) RecordedOption {
	return option{name: "FormerlyKnownAs", handler: func(settings *handlerSettings) error {
		if len(ids) == 0 {
			return errors.New("option FormerlyKnownAs: must have at least one id, got none")
		}
		settings.retries.former = append(settings.retries.former, ids...)
		return nil
	}}
}

// ReleaseOnFailure lets the object be deleted when its delete handler fails permanently. Whatever the handler should
// have cleaned up is left behind.
//
// By default the object stays, with the condition DeletionBlocked if its status has conditions. The handler runs again
// when the object changes. To give up, a user sets the annotation <identity>/release to the handler's id, or to * for
// all handlers that have failed.
func ReleaseOnFailure() DeleteOption {
	return option{name: "ReleaseOnFailure", handler: func(settings *handlerSettings) error {
		settings.retries.releases = true
		return nil
	}}
}

// retrySettings are the values of the options in this file.
type retrySettings struct {
	limits   handler.Limits
	former   []string
	releases bool
}

// into copies the settings to the declaration of a handler.
func (s retrySettings) into(declared *handler.Declaration) {
	declared.Limits, declared.Former, declared.Releases = s.limits, s.former, s.releases
}

// statusField is the field that contains the status.
const statusField = "status"

// OwnsStatus makes a handler the only writer of these fields of the status, and of everything below them. Paths start
// below the status: OwnsStatus("phase", "database.ready"). Name a condition by its type, and an item of any list with
// keys by its key: OwnsStatus("conditions[Ready]"). OwnsStatus("conditions") covers all conditions.
//
// Run returns an error if two handlers own the same field, or one owns a field below that of the other. If another
// handler changes the field on its copy, its attempt fails with an error that names both handlers, and none of its
// changes is written. It is a programming error, which this process does not retry. A field that the schema does not have is reported when the operator starts. Writes of other
// clients are not checked.
//
// By default, nothing owns a field. If two handlers then set it differently in one reconciliation, the later one wins,
// and Einmal warns about it.
func OwnsStatus(paths ...string) HandlerOption {
	return option{name: "OwnsStatus", handler: func(settings *handlerSettings) error {
		if len(paths) == 0 {
			return errors.New("option OwnsStatus: must have at least one field of the status, such as phase, got none")
		}
		for _, text := range paths {
			path, err := object.ParsePath(text)
			if err != nil {
				return fmt.Errorf("option OwnsStatus: %w", err)
			}
			if len(path) > 1 && path[0] == statusField {
				return fmt.Errorf("option OwnsStatus: paths must start below the status, got %s: write it as %s", text, path[1:])
			}
			settings.owns = append(settings.owns, append(object.Path{statusField}, path...))
		}
		return nil
	}}
}
