package engine

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// What people see where an effect outside of the cluster has to be looked after by a person.
const (
	undecidedCondition = "EffectUndecided"
	undecidedReason    = "ResultUnknown"
)

// Conditions returns the types of the conditions that the engine sets on objects.
func Conditions() []string { return []string{LostCondition, blockedCondition, undecidedCondition} }

// conditionsField is where the conventions of Kubernetes put conditions.
func conditionsField() object.Path { return object.Path{"status", "conditions"} }

// condition is one that the framework itself sets, beside those of handlers.
type condition struct {
	name, reason string
	// message is the text while the condition holds, ended the one afterwards.
	message, ended string
	holds          bool
}

// conditions are those that begin or end with this work.
func (p *pass) conditions(w *work) []condition {
	var found []condition
	lost, asked := p.plan.Cause == cause.Lost, p.record != nil && p.record.Recreated != w.record.Recreated
	if lost || asked {
		found = append(found, condition{
			name: LostCondition, reason: lostReason, holds: lost,
			message: "the record is missing; to run the create handlers once, set the annotation " +
				object.RecreateAnnotation(p.settings.Identity) + " to a new value",
			ended: "the create handlers were requested by annotation",
		})
	}
	blocked := p.pure.Blocked(w.record)
	if len(blocked) > 0 || p.record != nil && len(p.pure.Blocked(*p.record)) > 0 {
		found = append(found, condition{
			name: blockedCondition, reason: blockedReason, holds: len(blocked) > 0,
			message: "delete handlers failed permanently: " + strings.Join(blocked, ", ") + "; change the object to run them again, " +
				"or set the annotation " + object.ReleaseAnnotation(p.settings.Identity) + " to the id of a handler to delete the object without it",
			ended: "no delete handler blocks the deletion",
		})
	}
	asking := p.pure.Asking(w.record)
	if len(asking) > 0 || p.record != nil && len(p.pure.Asking(*p.record)) > 0 {
		found = append(found, p.undecided(asking))
	}
	return found
}

// undecided is the condition of an object with effects of which a person has to say what came of them.
func (p *pass) undecided(asking []handler.Asking) condition {
	ways := make([]string, len(asking))
	for i, one := range asking {
		ways[i] = one.Handler + "/" + one.Effect + ": report it with the annotation " + object.EffectAnnotation(p.settings.Identity, one.Token)
	}
	return condition{
		name: undecidedCondition, reason: undecidedReason, holds: len(asking) > 0,
		message: "the results of these effects are unknown: " + strings.Join(ways, ", "),
		ended:   "no effect has an unknown result",
	}
}

// markConditions adds what has become of the conditions to the document of the status. It expects their list to be as it
// was.
func (p *pass) markConditions(w *work, document *patch.Document) {
	w.marksConditions = false
	if w.withoutConditions || p.memory.withoutConditions {
		return
	}
	found := p.conditions(w)
	if len(found) == 0 {
		return
	}
	value, has := document.Value(conditionsField())
	list, isList := value.([]any)
	if has && value != nil && !isList {
		return
	}
	generation, _ := object.Get(p.body, "metadata", "generation")
	changed := false
	for _, c := range found {
		if !p.description.Conditions.Accept(c.name) {
			p.reportCondition(c.name, "the schema of the kind does not accept it")
			continue
		}
		var news bool
		list, news = c.put(list, generation)
		changed = changed || news
	}
	if w.marksConditions = changed; changed {
		document.Test(conditionsField())
		document.Edit(patch.Edit{Path: conditionsField(), Value: list})
	}
}

// reportCondition logs once for the kind that a condition is not set.
func (p *pass) reportCondition(name, reason string) {
	if _, reported := p.reported.LoadOrStore("condition "+name, true); !reported {
		p.log.Warn("cannot set a condition, the log and events report the same", "condition", name, "reason", reason,
			"remedy", "accept all conditions of the form metav1.Condition in the schema of the kind")
	}
}

// dropConditions leaves the conditions of the framework out of the work. It reports whether there were any.
func (w *work) dropConditions() bool {
	if !w.marksConditions {
		return false
	}
	w.withoutConditions = true
	return true
}

// noteConditions remembers that the API server accepts the object only without the conditions of the framework.
func (p *pass) noteConditions(w *work) {
	if !w.withoutConditions || w.refusal != nil || p.memory.withoutConditions {
		return
	}
	p.memory.withoutConditions = true
	for _, c := range p.conditions(w) {
		p.reportCondition(c.name, "the API server rejects it")
	}
}

// put returns the list with the condition, and reports whether that is a change. A condition that never held is not added as ended.
func (c condition) put(list []any, generation any) ([]any, bool) {
	status, message := string(metav1.ConditionFalse), c.ended
	if c.holds {
		status, message = string(metav1.ConditionTrue), c.message
	}
	others, since := make([]any, 0, len(list)+1), time.Now().UTC().Format(time.RFC3339)
	var known object.Body
	for _, item := range list {
		if one, is := item.(object.Body); is && object.Text(one, "type") == c.name {
			known = one
		} else {
			others = append(others, item)
		}
	}
	was := object.Text(known, "status")
	if known == nil && !c.holds || was == status && (!c.holds || object.Text(known, "message") == c.message) {
		return list, false
	}
	if was == status {
		since = object.Text(known, "lastTransitionTime")
	}
	return append(others, object.Body{
		"type": c.name, "status": status, "reason": c.reason, "message": message,
		"observedGeneration": generation, "lastTransitionTime": since,
	}), true
}
