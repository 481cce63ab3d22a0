package record

import (
	stdjson "encoding/json"
	"maps"
	"strings"
)

// ResultLimit is the most bytes that the result of one step may take, StepsLimit what all steps of a handler may take
// together: an object must never become too large to be written by what is remembered of it.
const (
	ResultLimit = 4 << 10
	StepsLimit  = 32 << 10
)

// StepMark stands between the id of a step and those of the steps within it.
const StepMark = "/"

// Step is a part of a handler: one that is done, or an effect that is intended.
type Step struct {
	// Result is the JSON of what it gave; none if it gave nothing.
	Result stdjson.RawMessage `json:"result,omitempty"`
	// Intent is that of an effect outside of the cluster; nil for other steps. Without a Result nobody knows what came of it.
	Intent *Intent `json:"intent,omitempty"`
}

// Finish returns the steps with one more that is done. The steps within it are done with it, and need not be remembered, but
// for effects: should it be made again, they are not.
func Finish(steps map[string]Step, id string, done Step) map[string]Step {
	finished := make(map[string]Step, len(steps)+1)
	for other, step := range steps {
		if step.Intent != nil || !strings.HasPrefix(other, id+StepMark) {
			finished[other] = step
		}
	}
	finished[id] = done
	return finished
}

// Undone returns the steps without those of these ids. An effect stays: it is not undone by what becomes of the object.
func Undone(steps map[string]Step, ids []string) map[string]Step {
	left := maps.Clone(steps)
	for _, id := range ids {
		if left[id].Intent == nil {
			delete(left, id)
		}
	}
	return left
}

// Join returns all steps that are done in one or the other, and all effects with what is known of them.
func Join(some, others map[string]Step) map[string]Step {
	if len(some) == 0 {
		return others
	}
	joined := maps.Clone(some)
	for id, step := range others {
		if known, has := joined[id]; has {
			step = newest(known, step)
		}
		if step.Done() {
			joined = Finish(joined, id, step)
		} else {
			joined = Declare(joined, id, *step.Intent)
		}
	}
	return joined
}

// StepsSize is about how many bytes steps take in a record.
func StepsSize(steps map[string]Step) int {
	const around = len(`"":{"result":},`)
	size := 0
	for id, step := range steps {
		size += len(id) + len(step.Result) + around
		if step.Intent != nil {
			size += IntentSize(step.Intent.Name)
		}
	}
	return size
}

// IntentSize is about how many bytes the intent of an effect with this name takes in a record.
func IntentSize(name string) int {
	const around = len(`"intent":{"class":"findable","token":"","number":10,"by":"","at":"2026-11-21T07:00:00Z","asks":true,"heard":"","name":""}`)
	const tokenAndNotes = 64
	return around + tokenAndNotes + len(name)
}
