package engine

import (
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// What people see when a delete handler has failed for good and keeps its object.
const (
	blockedCondition = "DeletionBlocked"
	blockedReason    = "HandlerFailed"
	blockedSentence  = "delete handler %s failed permanently and blocks the deletion. To run it again, fix the cause and change " +
		"the object; to delete the object without it, set the annotation %s to %s"
)

// tellDeletion says once what the deletion has ended.
func (p *pass) tellDeletion() {
	if p.plan.Cause != cause.Delete || p.memory.deletionTold {
		return
	}
	p.memory.deletionTold = true
	var open []string
	for _, declared := range p.pure.Handlers {
		entry, has := p.plan.Record.Handlers[declared.ID]
		if has && entry.Outcome.Open() && (declared.Verb == cause.Create || declared.Verb == cause.Update) {
			open = append(open, declared.ID)
		}
	}
	if len(open) > 0 {
		p.log.Info("deletion supersedes unfinished handlers", "handlers", open)
	}
}

// tellMistaken says once that the annotation that releases an object names no delete handler.
func (p *pass) tellMistaken() {
	asked := p.state().Release
	if p.plan.Cause != cause.Delete || asked == "" || asked == object.ReleaseAll || asked == p.memory.releaseTold {
		return
	}
	var known []string
	for _, declared := range p.pure.Handlers {
		if declared.Verb == cause.Delete {
			known = append(known, declared.ID)
		}
	}
	if !slices.Contains(known, asked) {
		p.memory.releaseTold = asked
		p.log.Warn("release annotation ignored, it names no delete handler", "remedy", "set it to the id of a delete handler, or to * for all",
			"annotation", object.ReleaseAnnotation(p.settings.Identity), "value", asked, "known", known)
	}
}

// tellGivenUp says who is not tried any more, although no attempt was made now.
func (p *pass) tellGivenUp() {
	for _, given := range p.plan.GivenUp {
		log := p.log.With("handler", given.ID)
		if given.ByHand {
			log.Warn("delete handler released by annotation, what it cleans up may be left behind",
				"annotation", object.ReleaseAnnotation(p.settings.Identity), "failure", given.Why)
			continue
		}
		log.Error("handler failed permanently without another attempt, will run again when its fields change",
			"gaveUp", given.Why, "error", given.Result.Message)
		p.warnFailed(given.ID, given.Result.Message)
		if given.Verb == cause.Resume {
			p.memory.resumed[given.ID] = true
		}
		p.tellBlocked(given.Declaration)
	}
}

// tellBlocked names the way out when a handler that failed for good keeps its object: in the log and as an event. The
// condition goes with the record.
func (p *pass) tellBlocked(failed handler.Declaration) {
	if failed.Verb != cause.Delete || failed.Releases {
		return
	}
	annotation := object.ReleaseAnnotation(p.settings.Identity)
	p.log.Warn("deletion blocked by failed handler", "handler", failed.ID, "remedy", annotation+"="+failed.ID)
	p.warn(blockedCondition, blockedSentence, failed.ID, annotation, failed.ID)
}

// tellRefused says what became of an attempt whose changes the API server does not accept.
func (p *pass) tellRefused(o outcome, reason string) {
	p.log.Error("API server rejected changes of handler", "handler", o.run.ID, "reason", reason,
		"outcome", o.result.Outcome, "gaveUp", o.result.GaveUp)
	if o.result.Outcome == record.Failed {
		p.warnFailed(o.run.ID, "the API server rejected the changes of the handler: "+reason)
		p.tellBlocked(o.run.Declaration)
	}
}
