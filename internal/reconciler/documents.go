package reconciler

import (
	"fmt"
	"slices"
	"time"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
	"github.com/einmal-operators/einmal/internal/report"
)

// conditions are those of Einmal that begin, hold on or end with this work, and that the kind accepts.
func (c committer) conditions(w *work) []journal.Condition {
	if c.s.memory.withoutConditions {
		return nil
	}
	var accepted []journal.Condition
	for _, one := range c.changedConditions(w) {
		if c.s.view.Description.Conditions.Accept(one.Type) {
			accepted = append(accepted, one)
		} else {
			c.s.r.Reports.ConditionLeftOut(one.Type, "the schema of the kind does not accept it")
		}
	}
	return accepted
}

func (c committer) changedConditions(w *work) []report.Condition {
	return report.Conditions(c.s.r.Settings.Identity, c.s.view.Pure, report.Change{
		Cause: c.s.plan.Cause, Before: c.s.seen.Record().Before(), After: w.journal.Record(),
	})
}

// noteConditions remembers that the API server accepts the object only without the conditions of the framework.
func (c committer) noteConditions(w *work) {
	if !w.journal.WithoutConditions() || c.s.memory.withoutConditions {
		return
	}
	c.s.memory.withoutConditions = true
	for _, one := range c.changedConditions(w) {
		c.s.r.Reports.ConditionLeftOut(one.Type, "the API server rejects it")
	}
}

// target is the object as documents change it.
func (c committer) target(w *work) (journal.Target, error) {
	typed, err := c.typed(w)
	if err != nil {
		return journal.Target{}, err
	}
	removes := w.journal.Finalizer() == handler.Remove || c.s.marked() && w.journal.Record().Deleted && !c.s.r.daemons.Hold(c.s.key, c.s.memory.uid)
	target := journal.Target{
		Base: c.s.seen.Raw(), Seen: typed, HasStatus: c.s.view.Description.HasStatus, Carrier: c.s.view.Description.Carrier,
		Identity: c.s.r.Settings.Identity, Finalizer: c.s.r.Settings.Finalizer(), Stored: c.s.seen.Record().Stored(), Removes: removes,
		Released: removes && len(object.List(c.s.seen.Raw(), "metadata", "finalizers")) == 1 && c.s.plan.Cause == cause.Delete, // mutant: deletion-not-recorded
		Now:      time.Now(),
	}
	if w.journal.Writes(c.s.seen.Record().Stored()) {
		target.Conditions = c.conditions(w)
	}
	return target, nil
}

// reportFinalizer reports what becomes of the finalizer. From the request on, the removal counts.
func (c committer) reportFinalizer(w *work, removes bool) {
	switch {
	case removes:
		c.s.report.Log.Info("removing the finalizer", "finalizer", c.s.r.Settings.Finalizer())
		c.s.memory.released = object.Text(c.s.seen.Raw(), "metadata", "deletionTimestamp") != "" // mutant: release-forgotten
	case w.journal.Finalizer() == handler.Add:
		c.s.report.Log.Info("adding the finalizer", "finalizer", c.s.r.Settings.Finalizer())
	}
}

// typed returns the object that documents are computed from in the form that the Go type of the handlers writes. Only changes of lists need
// that form.
func (c committer) typed(w *work) (object.Body, error) {
	changesList := func(edit patch.Edit) bool { return edit.List != nil }
	switch {
	case !slices.ContainsFunc(w.journal.Edits(), changesList):
		return c.s.seen.Raw(), nil
	case !c.s.seen.IsLive():
		return c.s.seen.Body(), nil
	}
	typed, err := c.s.r.canonical(c.s.seen.Raw())
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", c.s.key, err)
	}
	return typed, nil
}
