package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/edge/invoke"
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
		p.log.Warn("record was removed or overwritten while the operator ran; writing it again, no handler is repeated")
	default:
		p.log.Debug("looked at", "cause", p.plan.Cause, "runs", len(p.plan.Runs), "wake", p.plan.Wake)
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

func (p *pass) tellInvoked(run handler.Run, wokenBy []Waker) {
	p.startup.invoked(p.key)
	log := p.log
	if len(wokenBy) > 0 {
		log = log.With("wokenBy", names(wokenBy))
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
	if panicked, is := errors.AsType[*invoke.PanicError](err); is {
		log = log.With("stack", string(panicked.Stack))
	}
	if result.GaveUp != "" {
		log = log.With("gaveUp", result.GaveUp)
	}
	switch result.Outcome {
	case record.Done:
		if result.Ignored {
			log.Warn("handler failed; that counts as success, since it is declared with OnError(Ignore)", "error", err)
			return
		}
		if run.Reason == cause.Timer {
			routine(log, run)("handler succeeded")
			return
		}
		log.Info("handler succeeded")
	case record.Waiting:
		routine(log, run)("handler waits", "again", result.Delay.String())
	case record.Failed:
		log.Error("handler failed for good; it runs again when what it looks at changes", "error", err)
		p.warnFailed(run.ID, fmt.Sprint(err))
		p.tellBlocked(run.Declaration)
	case record.Retry:
		log.Error("handler failed and is tried again", "error", err, "again", result.Delay.Round(time.Millisecond).String())
	case record.Pending:
		log.Warn("handler interrupted by the stop, the attempt does not count", "error", err)
	case record.Outside:
	}
}

func (p *pass) witness(run handler.Run, outcome record.Outcome) {
	if p.settings.Witness != nil {
		p.settings.Witness(Attempt{
			Kind: p.kind.GVK, Object: p.key, Handler: run.ID, Reason: run.Reason, Number: run.Attempt, Outcome: outcome,
		})
	}
}

// tellUnstripped says once that a manager which was built without our cache options keeps what nobody reads.
func (p *pass) tellUnstripped(cached client.Object) {
	if len(cached.GetManagedFields()) == 0 {
		return
	}
	if _, told := p.told.LoadOrStore("metadata.managedFields", true); !told {
		p.log.Warn("the cache holds managed fields, which cost memory: give the operator's CacheOptions to the manager")
	}
}
