// Package invoke calls user code once, with a deadline and protected against panics, and classifies its error.
package invoke

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// RetryAfterError asks for another attempt after Delay. If Err is nil the handler has not failed and only waits.
type RetryAfterError struct {
	Delay time.Duration
	Err   error
}

// Error returns the failure, if any, and the delay until the next attempt.
func (e *RetryAfterError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("waiting, to be called again after %s", e.Delay)
	}
	return fmt.Sprintf("%v (retry requested after %s)", e.Err, e.Delay)
}

// Unwrap returns the failure.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// PermanentError means that no further attempt can succeed.
type PermanentError struct{ Err error }

// Error returns the text of the failure.
func (e *PermanentError) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *PermanentError) Unwrap() error { return e.Err }

// ProgrammingError means that the code of the handler is wrong, so that it fails until another release repairs it.
type ProgrammingError struct{ Err error }

// Error returns the text of the failure.
func (e *ProgrammingError) Error() string { return e.Err.Error() }

// Unwrap returns the failure.
func (e *ProgrammingError) Unwrap() error { return e.Err }

// PanicError is a recovered panic of user code. Goexit means that the code did not panic but ended its goroutine.
type PanicError struct {
	Value  any
	Stack  []byte
	Goexit bool
}

// Error describes the panic. The stack is not part of the text, so that it can be logged separately.
func (e *PanicError) Error() string {
	if e.Goexit {
		return "function ended its goroutine without returning: it called runtime.Goexit, as FailNow and Fatal of a test do"
	}
	return fmt.Sprintf("panic: %v", e.Value)
}

// Run calls fn with a context that ends after deadline. A panic becomes a *PanicError.
func Run(ctx context.Context, deadline time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	return Guard(func() error { return fn(ctx) })
}

// Guard calls fn in a new goroutine, so that a call of runtime.Goexit does not end a worker. A panic becomes a *PanicError, and so does
// the end of the goroutine.
func Guard(fn func() error) error {
	ended := make(chan error, 1)
	go func() {
		returned, err := false, error(nil)
		defer func() {
			if value := recover(); value != nil || !returned { // mutant: ended-goroutine
				err = &PanicError{Value: value, Stack: debug.Stack(), Goexit: value == nil}
			}
			ended <- err
		}()
		err = fn()
		returned = true
	}()
	return <-ended
}

// Verdict says what an error means for the next attempt.
type Verdict struct {
	Outcome record.Outcome
	// Delay is set if the handler named it.
	Delay time.Duration
	Asked bool
	// Broken means that the handler has a programming error.
	Broken bool
}

// Classify classifies the error of an attempt. Any error that is not of this package means a retry with backoff. A programming error takes
// precedence over what the handler says about its failure.
func Classify(err error) Verdict {
	if _, is := errors.AsType[*ProgrammingError](err); is {
		return Verdict{Outcome: record.Retry, Broken: true}
	}
	permanent, isPermanent := errors.AsType[*PermanentError](err)
	again, named := errors.AsType[*RetryAfterError](err)
	if parts, is := errors.AsType[*PartsError](err); is {
		// What the handler itself says about the failures of its parts takes precedence.
		if said := isPermanent && hasParts(permanent.Err) || named && hasParts(again.Err); !said {
			return parts.verdict()
		}
	}
	switch {
	case err == nil:
		return Verdict{Outcome: record.Done}
	case isPermanent:
		return Verdict{Outcome: record.Failed}
	case named && again.Err == nil:
		return Verdict{Outcome: record.Waiting, Delay: again.Delay, Asked: true}
	case named:
		return Verdict{Outcome: record.Retry, Delay: again.Delay, Asked: true}
	default:
		return Verdict{Outcome: record.Retry}
	}
}

func hasParts(err error) bool {
	_, is := errors.AsType[*PartsError](err)
	return is
}
