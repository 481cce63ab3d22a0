package handler

import (
	"fmt"
	"maps"
	"slices"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// lasting are the effects of an entry that outlast a failure for good, a limit, and the filters of the handler. Those of a
// creation and of a deletion do, since there is one of each. Those of a change do as long as it is not known of all of them
// whether they were made.
func lasting(entry record.Entry) map[string]record.Step {
	single := entry.Cause == string(cause.Create) || entry.Cause == string(cause.Delete)
	if !single && !record.Unknown(entry.Steps) {
		return nil
	}
	return record.Effects(entry.Steps)
}

// setAside ends a handling without a result. The entry goes, unless the result of an effect is unknown: then the next handling
// of the handler finds the intents, as it does after a final failure.
func setAside(r record.Record, declared Declaration, entry record.Entry) record.Record {
	if !record.Unknown(entry.Steps) { // mutant: intent-forgotten-with-a-change
		return r.Without(declared.ID)
	}
	return r.With(declared.ID, record.Entry{
		Cause: string(declared.Verb), Outcome: record.Failed, Seen: entry.Seen, Message: entry.Message,
		Steps: record.Effects(entry.Steps), Since: entry.Since, Mixed: entry.Mixed,
	})
}

// keepsEffects tells whether the entry is of a failure for good that left an effect of which nobody knows whether it was made.
// What the handler was called for is not over then.
func keepsEffects(entry record.Entry) bool {
	return entry.Outcome == record.Failed && record.Unknown(entry.Steps)
}

// remembering enters the steps and effects that are to be remembered.
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

// withEffects enters the effects that outlast a failure for good.
func (k Kind) withEffects(r record.Record, entry record.Entry, run Run, result Result, seen object.Body) (record.Record, record.Entry) {
	previous := r.Handlers[run.ID]
	entry.Steps = result.Steps
	if previous.Cause == entry.Cause {
		entry.Steps = record.Join(record.Effects(previous.Steps), result.Steps)
	}
	entry.Steps = record.Hear(lasting(entry), run.Words, digestOf)
	if len(entry.Steps) == 0 || run.Reason != cause.Create && run.Reason != cause.Update {
		return r, entry
	}
	if result.Steps == nil { // It is given up without another attempt.
		entry.Since, entry.Mixed = previous.Since, previous.Mixed
		return r, entry
	}
	r, entry.Since = k.keepOldest(r, run, seen)
	entry.Mixed = run.Since != "" && entry.Since == run.Since
	return r, entry
}

// afresh is the entry of a handler whose attempts count anew.
func afresh(entry record.Entry) record.Entry {
	return record.Entry{
		Outcome: record.Failed, Cause: entry.Cause, Late: entry.Late, Steps: lasting(entry), Since: entry.Since, Mixed: entry.Mixed,
	}
}

// news tells whether there is something that the handler did not know at its last attempt.
func (d *decision) news(declared Declaration, entry record.Entry) bool {
	return d.edited(declared, entry) || d.answered(entry)
}

// answered tells whether a person has said something new of an effect that asks.
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

// creatingAny tells whether a handler is in its creation, or failed in it.
func (k Kind) creatingAny(r record.Record) bool {
	for _, declared := range k.Handlers {
		if creating(declared, r.Handlers[declared.ID]) {
			return true
		}
	}
	return false
}

// Asking is an effect of which a person has to say what came of it.
type Asking struct{ Handler, Effect, Token string }

// Asking lists the effects of which a person has to say what came of them, by handler and id.
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

// EffectName names an effect among all that there are. It is false where an object can have several handlings of the run's cause:
// then nothing but chance tells the effect of one from that of another.
func (r Run) EffectName(uid, recreated, effect string) (name string, is bool) {
	single := r.Reason == cause.Create || r.Reason == cause.Delete
	return fmt.Sprintf("%q", []string{uid, string(r.Reason), recreated, r.ID, effect}), single
}

// digestOf is short, since it only tells one word of a person from the one before.
func digestOf(word string) string {
	const enough = 8
	return object.Digest(object.Body{"word": word})[:enough]
}
