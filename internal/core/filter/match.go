package filter

import "github.com/einmal-operators/einmal/internal/core/object"

// Match is a condition on one value. The zero value matches any value, and also the absence of one.
type Match struct {
	test func(value any, found bool) bool
	form form
	want any
}

// form records how a match was made, so that contradictions can be detected.
type form int

const (
	anything form = iota
	present
	absent
	equals
	custom
)

// Present matches any value, including null and an empty one.
func Present() Match {
	return Match{form: present, test: func(_ any, found bool) bool { return found }}
}

// Absent matches if there is no value.
func Absent() Match {
	return Match{form: absent, test: func(_ any, found bool) bool { return !found }}
}

// Equals matches an equal decoded JSON value. Numbers are compared by value.
func Equals(want any) Match {
	return Match{form: equals, want: want, test: func(value any, found bool) bool {
		return found && object.Equal(value, want)
	}}
}

// Func matches if the function returns true.
func Func(test func(value any, found bool) bool) Match { return Match{form: custom, test: test} }

// Unset reports whether m is the zero value.
func (m Match) Unset() bool { return m.test == nil }

// Want returns the value passed to Equals. The result is false if the match was not made by Equals.
func (m Match) Want() (want any, is bool) { return m.want, m.form == equals }

func (m Match) holds(value any, found bool) bool { return m.test == nil || m.test(value, found) }

// Excludes reports whether no value can match both conditions. It returns false where that cannot be known, as for functions.
func (m Match) Excludes(other Match) bool {
	switch {
	case m.form == absent:
		return other.form == present || other.form == equals
	case other.form == absent:
		return m.form == present || m.form == equals
	case m.form == equals && other.form == equals:
		return !object.Equal(m.want, other.want)
	default:
		return false
	}
}

// Same reports whether both conditions match the same single value, or both match only the absence of one.
func (m Match) Same(other Match) bool {
	return m.form == absent && other.form == absent ||
		m.form == equals && other.form == equals && object.Equal(m.want, other.want)
}

// Change is a condition on how the value at a path changes: on the old value, on the new one, or on either of them.
type Change struct {
	Path             object.Path
	Either, From, To Match
}

// Test reports whether the change between two states matches. A nil from is an unknown state and counts as a match, so that
// no change is missed. A panic is returned as an error.
func (c Change) Test(from, to object.Body) (holds bool, err error) {
	defer caught(&err)
	before, had := object.Get(from, c.Path...)
	after, has := object.Get(to, c.Path...)
	known := from != nil
	if !c.To.holds(after, has) || known && !c.From.holds(before, had) {
		return false, nil
	}
	return c.Either.holds(after, has) || !known || c.Either.holds(before, had), nil
}

// TestNew is Test for a creation: there was no value before, so only the current one can match.
func (c Change) TestNew(to object.Body) (holds bool, err error) {
	defer caught(&err)
	after, has := object.Get(to, c.Path...)
	return c.To.holds(after, has) && c.Either.holds(after, has) && c.From.holds(nil, false), nil
}
