package engine

import (
	"cmp"
	"time"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/report"
)

// conditionsField is where the conventions of Kubernetes put conditions.
func conditionsField() object.Path { return object.Path{"status", "conditions"} }

// conditions are those of Einmal that begin, hold on or end with this work.
func (p *pass) conditions(w *work) []report.Condition {
	return report.Conditions(p.settings.Identity, p.pure, report.Change{Cause: p.plan.Cause, Before: cmp.Or(p.overruled, p.record), After: w.record})
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
		if !p.description.Conditions.Accept(c.Type) {
			p.reports.ConditionLeftOut(c.Type, "the schema of the kind does not accept it")
			continue
		}
		var news bool
		list, news = c.Put(list, generation, time.Now())
		changed = changed || news
	}
	if w.marksConditions = changed; changed {
		document.Test(conditionsField())
		document.Edit(patch.Edit{Path: conditionsField(), Value: list})
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
		p.reports.ConditionLeftOut(c.Type, "the API server rejects it")
	}
}
