package record

import (
	stdjson "encoding/json"
	"maps"
	"strings"
)

// ResultLimit is the maximum number of bytes of the result of one step, StepsLimit that of all steps of a handler together. The
// record must never make an object too large to be written.
const (
	ResultLimit = 4 << 10
	StepsLimit  = 32 << 10
)

// StepMark separates the id of a step from the ids of the steps within it.
const StepMark = "/"

// Step is a part of a handler: a finished one, or an effect with an intent.
type Step struct {
	// Result is the result as JSON. It is empty if the step returned nothing.
	Result stdjson.RawMessage `json:"result,omitempty"`
	// Intent is the intent of an effect outside the cluster, or nil for other steps. Without a Result the outcome is unknown.
	Intent *Intent `json:"intent,omitempty"`
}

// Finish returns the steps with one more finished step. The steps within it are removed, since they are done as part of it. Effects
// within it are kept: if the outer step runs again, they must not.
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

// Undone returns the steps without those with these ids. Effects are kept: a change of the object does not undo them.
func Undone(steps map[string]Step, ids []string) map[string]Step {
	left := maps.Clone(steps)
	for _, id := range ids {
		if left[id].Intent == nil {
			delete(left, id)
		}
	}
	return left
}

// Join returns all steps that are done in one of the two, and all effects with everything that is known about them.
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

// StepsSize returns about how many bytes the steps take in a record.
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

// IntentSize returns about how many bytes the intent of an effect with this name takes in a record.
func IntentSize(name string) int {
	const around = len(`"intent":{"class":"findable","token":"","number":10,"by":"","at":"2026-11-21T07:00:00Z","asks":true,"heard":"","name":""}`)
	const tokenAndNotes = 64
	return around + tokenAndNotes + len(name)
}
