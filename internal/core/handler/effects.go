package handler

import (
	"fmt"
	"maps"
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// lasting returns the effects of an entry that outlast a permanent failure, a limit, and a change of what the handler's filters
// match. Effects of a creation and of a deletion do, since each happens only once. Effects of an update do as long as the result of
// one of them is unknown.
func lasting(entry record.Entry) map[string]record.Step {
	single := entry.Cause == string(cause.Create) || entry.Cause == string(cause.Delete)
	if !single && !record.Unknown(entry.Steps) {
		return nil
	}
	return record.Effects(entry.Steps)
}

// setAside ends the handling of a cause without a result. It removes the entry, unless the result of an effect is unknown: then the
// next handling by this handler finds the intents, as it does after a permanent failure.
func setAside(r record.Record, declared Declaration, entry record.Entry) record.Record {
	if !record.Unknown(entry.Steps) { // mutant: intent-forgotten-with-a-change
		return r.Without(declared.ID)
	}
	return r.With(declared.ID, record.Entry{
		Cause: string(declared.Verb), Outcome: record.Failed, Seen: entry.Seen, Message: entry.Message,
		Steps: record.Effects(entry.Steps), Since: entry.Since, Mixed: entry.Mixed,
	})
}

// keepsEffects reports whether the entry is a permanent failure that left an effect with an unknown result. Then the cause is not
// finished.
func keepsEffects(entry record.Entry) bool {
	return entry.Outcome == record.Failed && record.Unknown(entry.Steps)
}

// remembering adds the steps and effects to be stored to an entry.
func (k Kind) remembering(r record.Record, entry record.Entry, run Run, result Result, seen object.Body) (record.Record, record.Entry) {
	switch {
	case result.Outcome.Open():
		return k.withSteps(r, entry, run, result, seen)
	case result.Outcome == record.Failed:
		return k.withEffects(r, entry, run, result, seen)
	default:
		return r, entry
	}
}

// withEffects adds the effects that outlast a permanent failure to an entry.
func (k Kind) withEffects(r record.Record, entry record.Entry, run Run, result Result, seen object.Body) (record.Record, record.Entry) {
	previous := r.Handlers[run.ID]
	entry.Steps = result.Steps
	if previous.Cause == entry.Cause {
		entry.Steps = record.Join(record.Effects(previous.Steps), result.Steps)
	}
	entry.Steps = record.NoteAnswers(lasting(entry), run.Words, digestOf)
	if len(entry.Steps) == 0 || run.Reason != cause.Create && run.Reason != cause.Update {
		return r, entry
	}
	if result.Steps == nil { // The handler was given up without another attempt.
		entry.Since, entry.Mixed = previous.Since, previous.Mixed
		return r, entry
	}
	r, entry.Since = k.keepOldest(r, run, seen)
	entry.Mixed = run.Since != "" && entry.Since == run.Since
	return r, entry
}

// afresh returns the entry of a handler whose attempts are counted from the beginning again.
func afresh(entry record.Entry) record.Entry {
	return record.Entry{
		Outcome: record.Failed, Cause: entry.Cause, Late: entry.Late, Steps: lasting(entry), Since: entry.Since, Mixed: entry.Mixed,
	}
}

// hasNews reports whether there is anything that the handler did not see at its last attempt.
func (d *decision) hasNews(declared Declaration, entry record.Entry) bool {
	return d.edited(declared, entry) || d.answered(entry)
}

// answered reports whether a user has given a new answer about an effect that asks for one.
func (d *decision) answered(entry record.Entry) bool {
	for _, step := range entry.Steps {
		if !step.Unknown() || !step.Intent.Asks {
			continue
		}
		if word := d.state.Words[step.Intent.Token]; word != "" && digestOf(word) != step.Intent.Heard {
			return true
		}
	}
	return false
}

// Creating reports whether a handler is in its creation or has failed in it.
func (k Kind) Creating(r record.Record) bool {
	for _, declared := range k.Handlers {
		if creating(declared, r.Handlers[declared.ID]) {
			return true
		}
	}
	return false
}

// Asking is an effect whose outcome a person has to supply.
type Asking struct{ Handler, Effect, Token string }

// Asking lists the effects whose outcome a person has to supply, by handler and effect id.
func (k Kind) Asking(r record.Record) []Asking {
	var found []Asking
	for _, declared := range k.Handlers {
		found = append(found, askingOf(declared.ID, r.Handlers[declared.ID].Steps)...)
	}
	return found
}

func askingOf(handler string, steps map[string]record.Step) []Asking {
	var found []Asking
	for _, id := range slices.Sorted(maps.Keys(steps)) {
		if step := steps[id]; step.Unknown() && step.Intent.Asks {
			found = append(found, Asking{Handler: handler, Effect: id, Token: step.Intent.Token})
		}
	}
	return found
}

// EffectName returns a name that identifies an effect among all effects. It returns false if an object can have several handlings of
// the run's cause, because then only a random token can distinguish their effects.
func (r Run) EffectName(uid, recreated, effect string) (name string, is bool) {
	single := r.Reason == cause.Create || r.Reason == cause.Delete
	return fmt.Sprintf("%q", []string{uid, string(r.Reason), recreated, r.ID, effect}), single
}

// digestOf returns a short digest: it only has to distinguish an answer from the previous one.
func digestOf(word string) string {
	const enough = 8
	return object.Digest(object.Body{"word": word})[:enough]
}
