package report

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/edge/metrics"
)

// The reasons of events about handlers: failedReason if they are not retried, failingReason if they are.
const (
	failedReason  = "HandlerFailed"
	failingReason = "HandlerFailing"
)

// What people see of a handler with a programming error.
const (
	brokenMessage  = "handler has a programming error, will run again in a new process"
	brokenSentence = "handler %s has a programming error, and runs again in a new process%s: %v"
	brokenEdited   = " or when its fields change"
)

// permissionRemedy says what to do about a request for which the operator lacks permission.
const permissionRemedy = "name the permission with einmal.Permissions or einmal.Applies, and apply what the command rbac prints"

// failingAttempt is the first attempt whose failure leads to an event: a fault that passes by itself is over by then.
const failingAttempt = 3

// Ended is an attempt that has ended.
type Ended struct {
	Run    handler.Run
	Result handler.Result
	// Err is what the handler returned, with a redacted text.
	Err  error
	Took time.Duration
	// Again means that the attempt before it failed because of a programming error, too.
	Again bool
}

// AttemptBegan reports that a handler is called now. TriggeredBy are the related objects whose changes are the reason, as text for people.
func (o Object) AttemptBegan(run handler.Run, triggeredBy string) {
	log := o.Log
	if triggeredBy != "" {
		log = log.With("triggeredBy", triggeredBy)
	}
	routine(log, run)("handler invoked", "handler", run.ID, "reason", run.Reason, "attempt", run.Attempt)
	o.kind.onAttempt(o, run, "")
}

// AttemptEnded reports how an attempt has ended.
func (o Object) AttemptEnded(attempt Ended) {
	o.logEnd(attempt)
	o.count(attempt.Run, attempt.Result.Outcome, attempt.Took)
}

// count reports an attempt that has ended to the metrics, and to tests.
func (o Object) count(run handler.Run, outcome record.Outcome, took time.Duration) {
	o.kind.Metrics.Ran(metrics.Run{
		Handler: run.ID, Reason: string(run.Reason), Outcome: string(outcome), Attempt: run.Attempt, Took: took,
	})
	o.kind.onAttempt(o, run, outcome)
}

func (k *Kind) onAttempt(about Object, run handler.Run, outcome record.Outcome) {
	if k.OnAttempt != nil {
		k.OnAttempt(about.key, run, outcome)
	}
}

// routine returns the function that logs an attempt: that a handler still waits, or that a timer runs again, is no news.
func routine(log *slog.Logger, run handler.Run) func(string, ...any) {
	if run.Waited {
		return log.Debug
	}
	return log.Info
}

// attemptLog returns the log with the attributes of an attempt.
func (o Object) attemptLog(attempt Ended) *slog.Logger {
	run := attempt.Run
	log := o.Log.With("handler", run.ID, "reason", run.Reason, "attempt", run.Attempt, "took", attempt.Took.Round(time.Millisecond).String())
	if attempt.Result.GaveUp != "" {
		log = log.With("gaveUp", attempt.Result.GaveUp)
	}
	return log
}

func (o Object) logEnd(attempt Ended) {
	log, run, result, failure := o.attemptLog(attempt), attempt.Run, attempt.Result, failureAttributes(attempt.Err)
	switch result.Outcome {
	case record.Done:
		switch {
		case result.Ignored:
			log.Warn("handler failed, error ignored", failure...)
		case run.Reason == cause.Timer:
			routine(log, run)("handler succeeded")
		default:
			log.Info("handler succeeded")
		}
	case record.Waiting:
		routine(log, run)("handler waits", "retryIn", result.Delay.String())
	case record.Failed:
		log.Error("handler failed permanently, will run again when its fields change", failure...)
		o.warnFailed(run, fmt.Sprint(attempt.Err))
	case record.Retry:
		if result.Broken {
			o.broken(log, attempt)
			return
		}
		log.With("retryIn", result.Delay.Round(time.Millisecond).String()).Error("handler failed, will retry", failure...)
		o.warnFailing(run, attempt.Err)
	case record.Pending:
		log.Warn("handler interrupted by shutdown, attempt not counted", failure...)
	case record.Outside:
	}
}

// broken reports a programming error: as an error in the log once for each object, and at once with an event, since it does not pass by itself.
func (o Object) broken(log *slog.Logger, attempt Ended) {
	report := log.Error
	if attempt.Again {
		report = log.Warn
	}
	report(brokenMessage, failureAttributes(attempt.Err)...)
	edited := brokenEdited
	if attempt.Run.Reason == cause.Daemon {
		edited = ""
	}
	o.warn(failingReason, brokenSentence, attempt.Run.ID, edited, attempt.Err)
}

// warnFailing sends an event about a handler that fails again and again: after the third attempt, and after every tenth.
func (o Object) warnFailing(run handler.Run, err error) {
	if run.Attempt != failingAttempt && run.Attempt%10 != 0 {
		return
	}
	remedy := ""
	if kube.LacksPermission(err) {
		remedy = "; " + permissionRemedy
	}
	o.warn(failingReason, "handler %s has failed %d times and will be retried: %v%s", run.ID, run.Attempt, err, remedy)
}

// warnFailed sends an event about a handler that has failed permanently, and says what to do if that blocks a deletion.
func (o Object) warnFailed(run handler.Run, reason string) {
	o.warn(failedReason, "handler %s failed permanently and runs again only when its fields change: %s", run.ID, reason)
	o.blocked(run.Declaration)
}

// failureAttributes are the attributes that describe a failure: the error first, then what to do about it, and the stack of a panic last.
func failureAttributes(err error) []any {
	attributes := []any{"error", err}
	if kube.LacksPermission(err) {
		attributes = append(attributes, "remedy", permissionRemedy)
	}
	if panicked, is := errors.AsType[*invoke.PanicError](err); is {
		attributes = append(attributes, "stack", string(panicked.Stack))
	}
	return attributes
}

// EventHandlerEnded reports how a handler of events has ended, which is never retried. The error has a redacted text; it is nil if there is none.
func (o Object) EventHandlerEnded(run handler.Run, took time.Duration, err error) {
	outcome := record.Done
	if err != nil {
		outcome = record.Failed
		o.EventHandlerFailed(run, err)
	}
	o.count(run, outcome, took)
}

// EventHandlerFailed reports why a handler of events has not done its work. The error has a redacted text.
func (o Object) EventHandlerFailed(run handler.Run, err error) {
	log := o.Log.With("handler", run.ID, "reason", run.Reason, "attempt", run.Attempt)
	if panicked, is := errors.AsType[*invoke.PanicError](err); is {
		log = log.With("stack", string(panicked.Stack))
	}
	if panicked, is := errors.AsType[*filter.PanicError](err); is {
		log = log.With("stack", string(panicked.Stack))
	}
	log.Error("event handler failed, will not retry", "error", err)
}
