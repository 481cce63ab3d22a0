// Package invoke runs user code once: with a deadline, guarded against panics, its error sorted into an outcome.
package invoke

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// RetryAfterError asks for another attempt after Delay. Without Err nothing has failed: the handler waits.
type RetryAfterError struct {
	Delay time.Duration
	Err   error
}

// Error tells what failed, if anything, and when the next attempt is due.
func (e *RetryAfterError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("waiting: asked to be called again after %s", e.Delay)
	}
	return fmt.Sprintf("%v (asked to be called again after %s)", e.Err, e.Delay)
}

// Unwrap gives the failure.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// PermanentError says that no further attempt can help.
type PermanentError struct{ Err error }

// Error is the text of the failure.
func (e *PermanentError) Error() string { return e.Err.Error() }

// Unwrap gives the failure.
func (e *PermanentError) Unwrap() error { return e.Err }

// PanicError is a panic of user code, caught. Goexit reports that the code did not panic, but ended its goroutine.
type PanicError struct {
	Value  any
	Stack  []byte
	Goexit bool
}

// Error names the panic; the stack is kept apart, for the log.
func (e *PanicError) Error() string {
	if e.Goexit {
		return "the function ended its goroutine instead of returning: it called runtime.Goexit, as FailNow and Fatal of a test do"
	}
	return fmt.Sprintf("panic: %v", e.Value)
}

// Run calls fn with a context that ends after deadline. A panic becomes a *PanicError.
func Run(ctx context.Context, deadline time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	return Guard(func() error { return fn(ctx) })
}

// Guard calls fn, in a goroutine of its own: one that fn ends with runtime.Goexit must not be a worker. A panic becomes a
// *PanicError, and so does the end of the goroutine.
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

// Verdict is what an error means for the next attempt.
type Verdict struct {
	Outcome record.Outcome
	// Delay is set when the handler named it.
	Delay time.Duration
	Asked bool
}

// Classify sorts the error of an attempt. Anything that is not one of this package's errors is tried again with
// back-off.
func Classify(err error) Verdict {
	permanent, isPermanent := errors.AsType[*PermanentError](err)
	again, named := errors.AsType[*RetryAfterError](err)
	if parts, is := errors.AsType[*PartsError](err); is {
		// What the handler itself says of its parts' failures goes before what they say.
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
