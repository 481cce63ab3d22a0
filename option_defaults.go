package einmal

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/engine"
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
	case engine.Event:
		s.retries = retrySettings{}
	}
}
