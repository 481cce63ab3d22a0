package reconciler

import (
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/report"
)

// conditions are those of Einmal that begin, hold on or end with this work, and that the kind accepts.
func (p *pass) conditions(w *work) []journal.Condition {
	if p.memory.withoutConditions {
		return nil
	}
	var accepted []journal.Condition
	for _, one := range p.changedConditions(w) {
		if p.view.Description.Conditions.Accept(one.Type) {
			accepted = append(accepted, one)
		} else {
			p.r.Reports.ConditionLeftOut(one.Type, "the schema of the kind does not accept it")
		}
	}
	return accepted
}

func (p *pass) changedConditions(w *work) []report.Condition {
	return report.Conditions(p.r.Settings.Identity, p.view.Pure, report.Change{
		Cause: p.plan.Cause, Before: p.seen.Record().Before(), After: w.journal.Record(),
	})
}

// noteConditions remembers that the API server accepts the object only without the conditions of the framework.
func (p *pass) noteConditions(w *work) {
	if !w.journal.WithoutConditions() || p.memory.withoutConditions {
		return
	}
	p.memory.withoutConditions = true
	for _, c := range p.changedConditions(w) {
		p.r.Reports.ConditionLeftOut(c.Type, "the API server rejects it")
	}
}
