package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
	"github.com/einmal-operators/einmal/internal/edge/kube"
)

// tellCause logs why the object is looked at; loudly only when that is news.
func (p *pass) tellCause() {
	p.tellUnreadable()
	p.tellDeletion()
	p.tellMistaken()
	p.tellGivenUp()
	switch {
	case p.plan.Cause == cause.Lost:
		p.tellLost()
	case p.plan.Cause == cause.Create && p.record == nil:
		p.log.Info("seen for the first time")
	case p.remembered && p.plan.Cause != cause.Free:
		p.log.Warn("record was removed or overwritten, writing it again")
	default:
		p.log.Debug("reconciling", "cause", p.plan.Cause, "runs", len(p.plan.Runs), "wake", p.plan.Wake)
	}
	for _, declared := range p.pure.Handlers {
		if declared.Verb == cause.Resume {
			if p.plan.Cause == cause.Create || p.plan.Outside[declared.ID] {
				p.memory.resumed[declared.ID] = true // What begins here has nothing to resume.
			}
		}
	}
}

func (k *keeper) tellServing() {
	records := string(k.shapes.now().description.Carrier)
	if !k.kind.Recorded() {
		records = "none"
	}
	k.log.Info("serving", "apiVersion", k.kind.GVK.GroupVersion().String(), "records", records)
}

func (p *pass) tellInvoked(run handler.Run, triggeredBy []Trigger) {
	p.startup.invoked(p.key)
	log := p.log
	if len(triggeredBy) > 0 {
		log = log.With("triggeredBy", names(triggeredBy))
	}
	routine(log, run)("handler invoked", "handler", run.ID, "reason", run.Reason, "attempt", run.Attempt)
}

// routine logs what an attempt tells: that a handler goes on waiting, or that a timer runs again, is no news.
func routine(log *slog.Logger, run handler.Run) func(string, ...any) {
	if run.Waited {
		return log.Debug
	}
	return log.Info
}

func (p *pass) tellOutcome(run handler.Run, result handler.Result, err error, took time.Duration) {
	log := p.log.With("handler", run.ID, "reason", run.Reason, "attempt", run.Attempt, "took", took.Round(time.Millisecond).String())
	failure := failureAttributes(err)
	if result.GaveUp != "" {
		log = log.With("gaveUp", result.GaveUp)
	}
	switch result.Outcome {
	case record.Done:
		if result.Ignored {
			log.Warn("handler failed, error ignored", failure...)
			return
		}
		if run.Reason == cause.Timer {
			routine(log, run)("handler succeeded")
			return
		}
		log.Info("handler succeeded")
	case record.Waiting:
		routine(log, run)("handler waits", "retryIn", result.Delay.String())
	case record.Failed:
		log.Error("handler failed permanently, will run again when its fields change", failure...)
		p.warnFailed(run.ID, fmt.Sprint(err))
		p.tellBlocked(run.Declaration)
	case record.Retry:
		if result.Broken {
			p.tellBroken(run, log, err)
			return
		}
		log.With("retryIn", result.Delay.Round(time.Millisecond).String()).Error("handler failed, will retry", failure...)
		p.warnFailing(run, err)
	case record.Pending:
		log.Warn("handler interrupted by shutdown, attempt not counted", failure...)
	case record.Outside:
	}
}

// What people see of a handler with a programming error.
const (
	brokenMessage  = "handler has a programming error, will run again in a new process"
	brokenSentence = "handler %s has a programming error, and runs again in a new process%s: %v"
	brokenEdited   = " or when its fields change"
)

// tellBroken reports a programming error: loudly once for each object, and at once with an event, since it does not pass by itself.
func (p *pass) tellBroken(run handler.Run, log *slog.Logger, err error) {
	report := log.Error
	if p.memory.broken[run.ID] {
		report = log.Warn
	}
	report(brokenMessage, failureAttributes(err)...)
	edited := brokenEdited
	if run.Reason == cause.Daemon {
		edited = ""
	}
	p.warn(failingReason, brokenSentence, run.ID, edited, err)
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

// permissionRemedy says what to do about a request for which the operator lacks permission.
const permissionRemedy = "name the permission with einmal.Permissions or einmal.Applies, and apply what the command rbac prints"

// failingAttempt is the attempt whose failure is the first that an event tells of: a fault that passes by itself is over by then.
const failingAttempt = 3

// warnFailing sends an event about a handler that fails again and again: after the third attempt, and after every tenth.
func (p *pass) warnFailing(run handler.Run, err error) {
	if run.Attempt != failingAttempt && run.Attempt%10 != 0 {
		return
	}
	remedy := ""
	if kube.LacksPermission(err) {
		remedy = "; " + permissionRemedy
	}
	p.warn(failingReason, "handler %s has failed %d times and will be retried: %v%s", run.ID, run.Attempt, err, remedy)
}

func (p *pass) reportAttempt(run handler.Run, outcome record.Outcome) {
	if p.settings.OnAttempt != nil {
		p.settings.OnAttempt(Attempt{
			Kind: p.kind.GVK, Object: p.key, Handler: run.ID, Reason: run.Reason, Number: run.Attempt, Outcome: outcome,
		})
	}
}
