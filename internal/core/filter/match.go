package filter

import "github.com/einmal-operators/einmal/internal/core/object"

// Match is a condition on one value. The zero value holds for any, and for none.
type Match struct {
	test func(value any, found bool) bool
	form form
	want any
}

// form is how a match was made, as far as contradictions can be told from it.
type form int

const (
	anything form = iota
	present
	absent
	equals
	custom
)

// Present holds where there is a value, be it null or empty.
func Present() Match {
	return Match{form: present, test: func(_ any, found bool) bool { return found }}
}

// Absent holds where there is none.
func Absent() Match {
	return Match{form: absent, test: func(_ any, found bool) bool { return !found }}
}

// Equals holds for a decoded JSON value that is equal; numbers are compared by value.
func Equals(want any) Match {
	return Match{form: equals, want: want, test: func(value any, found bool) bool {
		return found && object.Equal(value, want)
	}}
}

// Func holds where the function says so.
func Func(test func(value any, found bool) bool) Match { return Match{form: custom, test: test} }

// Unset tells whether it is the zero value.
func (m Match) Unset() bool { return m.test == nil }

// Want is the value of Equals.
func (m Match) Want() (want any, is bool) { return m.want, m.form == equals }

func (m Match) holds(value any, found bool) bool { return m.test == nil || m.test(value, found) }

// Excludes tells whether no value can match both, as far as that can be told: not of functions.
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

// Same tells whether both hold for one and the same value only, or both for none.
func (m Match) Same(other Match) bool {
	return m.form == absent && other.form == absent ||
		m.form == equals && other.form == equals && object.Equal(m.want, other.want)
}

// Change is a condition on what changes at a path: what it was, what it becomes, or either of both.
type Change struct {
	Path             object.Path
	Either, From, To Match
}

// Test tells whether the change from one state to another is one to answer. A nil state is an unknown one: it counts as
// what is wanted, so that no change is missed. A panic becomes an error.
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

// TestNew is Test at a creation: there was nothing before, and only what is there now can match.
func (c Change) TestNew(to object.Body) (holds bool, err error) {
	defer caught(&err)
	after, has := object.Get(to, c.Path...)
	return c.To.holds(after, has) && c.Either.holds(after, has) && c.From.holds(nil, false), nil
}
