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

// Step is a part of a handler that is done.
type Step struct {
	// Result is the JSON of what it gave; none if it gave nothing.
	Result stdjson.RawMessage `json:"result,omitempty"`
}

// Finish returns the steps with one more that is done. The steps within it are done with it, and need not be remembered.
func Finish(steps map[string]Step, id string, done Step) map[string]Step {
	finished := make(map[string]Step, len(steps)+1)
	for other, step := range steps {
		if !strings.HasPrefix(other, id+StepMark) {
			finished[other] = step
		}
	}
	finished[id] = done
	return finished
}

// Undone returns the steps without those of these ids.
func Undone(steps map[string]Step, ids []string) map[string]Step {
	left := maps.Clone(steps)
	for _, id := range ids {
		delete(left, id)
	}
	return left
}

// Join returns all steps that are done in one or the other.
func Join(some, others map[string]Step) map[string]Step {
	if len(some) == 0 {
		return others
	}
	joined := maps.Clone(some)
	for id, step := range others {
		joined = Finish(joined, id, step)
	}
	return joined
}

// StepsSize is about how many bytes steps take in a record.
func StepsSize(steps map[string]Step) int {
	const around = len(`"":{"result":},`)
	size := 0
	for id, step := range steps {
		size += len(id) + len(step.Result) + around
	}
	return size
}
