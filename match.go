package einmal

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/einmal-operators/einmal/internal/core/filter"
)

// Match is a condition on one value of a label, an annotation or a field. Present, Absent, Equals and Satisfies create
// one.
type Match struct {
	match filter.Match
	err   error
}

// Transition is a condition on the change of a field: see FieldChanges. From, To and FromOrTo create one.
type Transition struct {
	match Match
	end   end
}

// end says which value of a change a Transition tests.
type end int

const (
	either end = iota
	from
	to
)

var errNoMatch = errors.New("has no condition: use Present, Absent, Equals or Satisfies")

// Present matches if there is a value, even an empty one. In a Go type, a field without omitempty always has a value.
func Present() Match { return Match{match: filter.Present()} }

// Absent matches if there is no value. An empty value does not match.
func Absent() Match { return Match{match: filter.Absent()} }

// Equals matches a value that is equal as JSON: 1 equals 1.0, and a struct equals the map that it is written as. A
// value that cannot be written as JSON is an error of Run.
func Equals(value any) Match {
	text, err := json.Marshal(value)
	if err != nil {
		return Match{err: fmt.Errorf("Equals: marshal %T: %w", value, err)}
	}
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		return Match{err: fmt.Errorf("Equals: unmarshal the JSON of %T: %w", value, err)}
	}
	return Match{match: filter.Equals(decoded)}
}

// Satisfies matches if the function returns true. The function gets the value as decoded JSON (string, bool, int64,
// float64, []any, map[string]any, or nil for null), and whether it was found. A missing value is nil and not found. The
// function must return the same result for the same value, and must not modify it.
//
// If it panics, the object is not handled. This is logged and retried with increasing delays. Other objects are not
// affected.
func Satisfies(test func(value any, found bool) bool) Match {
	if test == nil {
		return Match{err: errors.New("Satisfies: the function is nil")}
	}
	return Match{match: filter.Func(test)}
}

// From matches the value of the field before the change.
func From(match Match) Transition { return Transition{match: match, end: from} }

// To matches the value of the field after the change.
func To(match Match) Transition { return Transition{match: match, end: to} }

// FromOrTo matches if the value before the change matches, or the value after it.
func FromOrTo(match Match) Transition { return Transition{match: match, end: either} }

// check returns an error if the match is invalid.
func (m Match) check() error {
	if m.err == nil && m.match.Unset() {
		return errNoMatch
	}
	return m.err
}

// joined combines the transitions of one field.
func joined(transitions []Transition) (filter.Change, error) {
	var change filter.Change
	ends := map[end]*filter.Match{either: &change.Either, from: &change.From, to: &change.To}
	for _, one := range transitions {
		if err := one.match.check(); err != nil {
			return change, err
		}
		if !ends[one.end].Unset() {
			return change, errors.New("has two conditions on the same value of the change: combine them in one Satisfies")
		}
		*ends[one.end] = one.match.match
	}
	if !change.Either.Unset() && len(transitions) > 1 {
		return change, errors.New("has FromOrTo together with From or To: use either FromOrTo, or From and To")
	}
	if change.From.Same(change.To) {
		return change, errors.New("From and To match the same single value, which is never a change")
	}
	return change, nil
}
