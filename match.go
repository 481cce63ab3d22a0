package einmal

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"

	"github.com/einmal-operators/einmal/internal/core/filter"
)

// Match is a condition on one value: that of a label, an annotation or a field. Make one with Present, Absent, Equals or
// Func; From and To say which end of a change it is about.
type Match struct {
	match filter.Match
	end   end
	err   error
}

// end is which end of a change a match is about.
type end int

const (
	either end = iota
	from
	to
)

var errNoMatch = errors.New("it has no condition: give it Present, Absent, Equals or Func")

// Present matches where there is a value, be it empty. Of a Go type a field without omitempty is always there.
func Present() Match { return Match{match: filter.Present()} }

// Absent matches where there is no value. An empty one is there.
func Absent() Match { return Match{match: filter.Absent()} }

// Equals matches a value that is the same as JSON: 1 equals 1.0, and a struct equals the map that it is written as.
// A value that cannot be written as JSON is a registration mistake.
func Equals(value any) Match {
	text, err := json.Marshal(value)
	if err != nil {
		return Match{err: fmt.Errorf("Equals: %T cannot be written as JSON: %w", value, err)}
	}
	var decoded any
	if err := json.Unmarshal(text, &decoded); err != nil {
		return Match{err: fmt.Errorf("Equals: %T cannot be read from its own JSON: %w", value, err)}
	}
	return Match{match: filter.Equals(decoded)}
}

// Func matches where the function says so. It gets the value as decoded JSON (string, bool, int64, float64, []any,
// map[string]any, nil for null) and whether there is one: a missing value is nil and not found. It must give the same answer
// for the same value, and must not change it. A panic leaves the object alone, and is told and tried again, less and less
// often; other objects go on.
func Func(test func(value any, found bool) bool) Match {
	if test == nil {
		return Match{err: errors.New("Func: the function is nil")}
	}
	return Match{match: filter.Func(test)}
}

// From is about what the field was before the change.
func From(match Match) Match { return match.about(from) }

// To is about what the field becomes by the change.
func To(match Match) Match { return match.about(to) }

func (m Match) about(which end) Match {
	if m.end != either && m.err == nil {
		m.err = errors.New("From and To are about one end of a change: give each a match of its own")
	}
	m.end = which
	return m
}

// check finds what is wrong with a match as such.
func (m Match) check() error {
	if m.err == nil && m.match.Unset() {
		return errNoMatch
	}
	return m.err
}

// plain is a match of a value as it is now.
func (m Match) plain() (filter.Match, error) {
	if err := m.check(); err != nil {
		return filter.Match{}, err
	}
	if m.end != either {
		return filter.Match{}, errors.New("From and To are for the Field of an update handler, not for the object as it is")
	}
	return m.match, nil
}

// joined puts the matches of one Field together.
func joined(matches []Match) (filter.Change, error) {
	var change filter.Change
	ends := map[end]*filter.Match{either: &change.Either, from: &change.From, to: &change.To}
	for _, one := range matches {
		if err := one.check(); err != nil {
			return change, err
		}
		if !ends[one.end].Unset() {
			return change, errors.New("it has two conditions on the same end: join them in one Func, or with All or Any")
		}
		*ends[one.end] = one.match
	}
	if !change.Either.Unset() && len(matches) > 1 {
		return change, errors.New("a condition on either end stands beside From or To: use From and To alone")
	}
	if change.From.Same(change.To) {
		return change, errors.New("From and To match the same value only, and that is no change")
	}
	return change, nil
}
