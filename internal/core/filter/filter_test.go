package filter_test

import (
	"errors"
	"testing"

	"github.com/einmal-operators/einmal/internal/core/filter"
	"github.com/einmal-operators/einmal/internal/core/object"
)

func body() object.Body {
	return object.Body{
		"metadata": object.Body{"labels": object.Body{"tier": "gold", "empty": ""}},
		"spec":     object.Body{"size": int64(1), "note": nil, "list": []any{"a"}},
	}
}

func field(match filter.Match, path ...string) filter.Field {
	return filter.Field{Path: path, Match: match}
}

// Scenario 46 (docs/concepts/scenarios.md): exact, present, absent and callback. The callback can distinguish a missing value from
// null and from an empty one.
func TestMatches(t *testing.T) {
	told := func(wantValue any, wantFound bool) filter.Match {
		return filter.Func(func(value any, found bool) bool { return value == wantValue && found == wantFound })
	}
	for name, test := range map[string]struct {
		field filter.Field
		want  bool
	}{
		"exact":                          {field(filter.Equals("gold"), "metadata", "labels", "tier"), true},
		"another":                        {field(filter.Equals("silver"), "metadata", "labels", "tier"), false},
		"exact, missing":                 {field(filter.Equals(""), "metadata", "labels", "none"), false},
		"present":                        {field(filter.Present(), "metadata", "labels", "tier"), true},
		"present, empty":                 {field(filter.Present(), "metadata", "labels", "empty"), true},
		"present, null":                  {field(filter.Present(), "spec", "note"), true},
		"present, missing":               {field(filter.Present(), "metadata", "labels", "none"), false},
		"absent":                         {field(filter.Absent(), "metadata", "labels", "none"), true},
		"absent, empty":                  {field(filter.Absent(), "metadata", "labels", "empty"), false},
		"an int as a float":              {field(filter.Equals(1.0), "spec", "size"), true},
		"null":                           {field(filter.Equals(nil), "spec", "note"), true},
		"null, missing":                  {field(filter.Equals(nil), "spec", "none"), false},
		"a list":                         {field(filter.Equals([]any{"a"}), "spec", "list"), true},
		"a function gets a value":        {field(told("gold", true), "metadata", "labels", "tier"), true},
		"a function gets no value":       {field(told(nil, false), "metadata", "labels", "none"), true},
		"a function gets null":           {field(told(nil, true), "spec", "note"), true},
		"a function gets an empty value": {field(told("", true), "metadata", "labels", "empty"), true},
		"without a condition":            {field(filter.Match{}, "spec", "none"), true},
	} {
		if got, err := filter.Test(test.field, body()); got != test.want || err != nil {
			t.Errorf("%s: got %t, %v, want %t", name, got, err, test.want)
		}
	}
}

func TestFiltersAreJoined(t *testing.T) {
	yes, no := field(filter.Present(), "spec"), field(filter.Absent(), "spec")
	for name, test := range map[string]struct {
		filter filter.Filter
		want   bool
	}{
		"all":        {filter.All{yes, yes}, true},
		"not all":    {filter.All{yes, no}, false},
		"any":        {filter.Any{no, yes}, true},
		"not any":    {filter.Any{no, no}, false},
		"not":        {filter.Not{Filter: no}, true},
		"a function": {filter.When(func(b object.Body) bool { return b["spec"] != nil }), true},
		"neither":    {filter.Not{Filter: filter.Any{no, yes}}, false},
	} {
		if got, err := filter.Test(test.filter, body()); got != test.want || err != nil {
			t.Errorf("%s: got %t, %v, want %t", name, got, err, test.want)
		}
	}
	paths := filter.All{yes, filter.Not{Filter: filter.Any{field(filter.Present(), "status", "phase"), filter.When(nil)}}}.Paths()
	if len(paths) != 2 || paths[1].String() != "status.phase" {
		t.Errorf("paths are %v", paths)
	}
}

// Scenario 47 (docs/concepts/scenarios.md): a panic becomes an error with its stack.
func TestAPanicOfAFilterIsAnError(t *testing.T) {
	_, err := filter.Test(filter.Not{Filter: filter.When(func(object.Body) bool { panic("no luck") })}, body())
	panicked, is := errors.AsType[*filter.PanicError](err)
	if !is || panicked.Value != "no luck" || len(panicked.Stack) == 0 {
		t.Errorf("got %v", err)
	}
	broken := filter.Func(func(any, bool) bool { panic("no luck") })
	if _, err := (filter.Change{To: broken}).Test(nil, body()); err == nil {
		t.Error("a change: no error")
	}
	if _, err := (filter.Change{To: broken}).TestNew(body()); err == nil {
		t.Error("a creation: no error")
	}
}

// Scenarios 42 to 45 (docs/concepts/scenarios.md): filters on the old value of a field, on the new one, or on either.
func TestChanges(t *testing.T) {
	path := object.Path{"tier"}
	x, y, gone := object.Body{"tier": "x"}, object.Body{"tier": "y"}, object.Body{}
	fromXToY := filter.Change{Path: path, From: filter.Equals("x"), To: filter.Equals("y")}
	removed := filter.Change{Path: path, To: filter.Absent()}
	isX := filter.Change{Path: path, Either: filter.Equals("x")}
	absent := filter.Change{Path: path, Either: filter.Absent()}
	for name, test := range map[string]struct {
		change   filter.Change
		from, to object.Body
		want     bool
	}{
		"42: x to y":                     {fromXToY, x, y, true},
		"42: z to y":                     {fromXToY, object.Body{"tier": "z"}, y, false},
		"42: x to z":                     {fromXToY, x, object.Body{"tier": "z"}, false},
		"43: removed":                    {removed, x, gone, true},
		"43: changed":                    {removed, x, y, false},
		"44: entering":                   {isX, y, x, true},
		"44: leaving":                    {isX, x, y, true},
		"44: neither":                    {isX, y, gone, false},
		"unknown before counts as right": {fromXToY, nil, y, true},
		"unknown before, either":         {isX, nil, y, true},
		"unknown before, wrong after":    {fromXToY, nil, x, false},
	} {
		if got, err := test.change.Test(test.from, test.to); got != test.want || err != nil {
			t.Errorf("%s: got %t, %v, want %t", name, got, err, test.want)
		}
	}
	for name, test := range map[string]struct {
		change filter.Change
		to     object.Body
		want   bool
	}{
		"45: absent, and it is there": {absent, x, false},
		"45: absent, and it is not":   {absent, gone, true},
		"the value":                   {isX, x, true},
		"nothing came before":         {fromXToY, y, false},
		"from nothing":                {filter.Change{Path: path, From: filter.Absent()}, y, true},
	} {
		if got, err := test.change.TestNew(test.to); got != test.want || err != nil {
			t.Errorf("at creation, %s: got %t, %v, want %t", name, got, err, test.want)
		}
	}
}

func TestContradictions(t *testing.T) {
	present, absent, a, b := filter.Present(), filter.Absent(), filter.Equals("a"), filter.Equals("b")
	custom := filter.Func(func(any, bool) bool { return true })
	for _, pair := range [][2]filter.Match{{present, absent}, {absent, a}, {a, b}} {
		if !pair[0].Excludes(pair[1]) || !pair[1].Excludes(pair[0]) {
			t.Errorf("%v and %v can both hold", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]filter.Match{{present, a}, {a, a}, {custom, absent}, {absent, absent}, {{}, a}} {
		if pair[0].Excludes(pair[1]) || pair[1].Excludes(pair[0]) {
			t.Errorf("%v and %v exclude each other", pair[0], pair[1])
		}
	}
	if !a.Same(a) || !absent.Same(absent) || a.Same(b) || present.Same(present) || (filter.Match{}).Same(filter.Match{}) {
		t.Error("Same is about one value")
	}
	if want, is := a.Want(); !is || want != "a" || !(filter.Match{}).Unset() || a.Unset() {
		t.Error("a match does not tell how it was made")
	}
}
