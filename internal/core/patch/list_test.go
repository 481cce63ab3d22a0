package patch_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

func conditions() patch.Lists {
	return patch.Lists{
		{Path: object.Path{"status", "conditions"}, Keys: []string{"type"}},
		{Path: object.Path{"spec", "ports"}, Keys: []string{"port", "protocol"}},
	}
}

// Scenario 58 (docs/concepts/scenarios.md): keyed lists are merged by key with their value at the time of the write.
func TestListsAreMergedByKey(t *testing.T) {
	for name, test := range map[string]struct{ before, after, newest, want string }{
		"added on both sides": {
			`[]`, `[{"type":"A"}]`, `[{"type":"B"}]`, `[{"type":"B"},{"type":"A"}]`,
		},
		"only touched fields of an item": {
			`[{"type":"A","status":"False","x":1}]`, `[{"type":"A","status":"True","x":1}]`,
			`[{"type":"A","status":"False","x":2,"theirs":3}]`, `[{"type":"A","status":"True","x":2,"theirs":3}]`,
		},
		"removed on one side, changed on the other": {
			`[{"type":"A"},{"type":"B"}]`, `[{"type":"B"}]`, `[{"type":"A","x":1},{"type":"B","x":1}]`, `[{"type":"B","x":1}]`,
		},
		"removed by others, unchanged here": {
			`[{"type":"A"},{"type":"B"}]`, `[{"type":"A"},{"type":"B","x":1}]`, `[]`, `[{"type":"B","x":1}]`,
		},
		"added on both sides with the same key: ours wins, field by field": {
			`[]`, `[{"type":"A","x":1}]`, `[{"type":"A","x":2,"y":1}]`, `[{"type":"A","x":1,"y":1}]`,
		},
		"a different order is not a change": {
			`[{"type":"A"},{"type":"B"}]`, `[{"type":"B"},{"type":"A"}]`, `[{"type":"A"},{"type":"B"}]`, `[{"type":"A"},{"type":"B"}]`,
		},
		"items without a key stay":          {`[]`, `[{"type":"A"}]`, `["odd",{"x":1}]`, `["odd",{"x":1},{"type":"A"}]`},
		"a removed list":                    {`[{"type":"A"}]`, `[{"type":"A","x":1}]`, `null`, `[{"type":"A","x":1}]`},
		"removed as a whole":                {`[{"type":"A"}]`, `null`, `[{"type":"A"},{"type":"B"}]`, `[{"type":"B"}]`},
		"taken away, nothing left":          {`[{"type":"A"}]`, `null`, `[{"type":"A"}]`, `null`},
		"duplicate keys: like no keys":      {`[{"type":"A"}]`, `[{"type":"A"},{"type":"A"}]`, `[{"type":"B"}]`, `[{"type":"B"},{"type":"A"}]`},
		"items without a key: like no keys": {`[]`, `["a"]`, `[{"type":"B"}]`, `[{"type":"B"},"a"]`},
	} {
		t.Run(name, func(t *testing.T) {
			merges(t, holding(t, test.before), holding(t, test.after), holding(t, test.newest), holding(t, test.want))
		})
	}
}

// holding returns an object with these conditions.
func holding(tb testing.TB, list string) object.Body {
	tb.Helper()
	if list == "null" {
		return body(tb, `{"metadata":{"uid":"u"},"status":{}}`)
	}
	return body(tb, fmt.Sprintf(`{"metadata":{"uid":"u"},"status":{"conditions":%s}}`, list))
}

func merges(t *testing.T, before, after, newest, want object.Body) {
	t.Helper()
	edits := conditions().Edits(before, after)
	if diff := cmp.Diff(want, patch.Apply(newest, edits)); diff != "" {
		t.Errorf("applied: %s", diff)
	}
	document := written(newest, edits)
	got, err := apply(t, document, text(t, newest))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, body(t, got)); diff != "" {
		t.Errorf("written: %s", diff)
	}
	if document.Empty() != cmp.Equal(want, newest) {
		t.Errorf("operations: %v", document.Operations())
	}
}

// written returns the document of some edits.
func written(base object.Body, edits []patch.Edit) *patch.Document {
	document := patch.New(base)
	for _, edit := range edits {
		document.Edit(edit)
	}
	return document
}

func text(tb testing.TB, value any) string {
	tb.Helper()
	written, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(written)
}

// A merged list is written only if the list is still the one that it was merged with.
func TestAMergedListDoesNotOverwriteANewerOne(t *testing.T) {
	for stored, newer := range map[string]string{
		`{"metadata":{"uid":"u"}}`:                                        `{"metadata":{"uid":"u"},"status":{"conditions":[{"type":"B"}]}}`,
		`{"metadata":{"uid":"u"},"status":{"phase":"x"}}`:                 `{"metadata":{"uid":"u"},"status":{"conditions":[]}}`,
		`{"metadata":{"uid":"u"},"status":{"conditions":[{"type":"B"}]}}`: `{"metadata":{"uid":"u"},"status":{"conditions":[{"type":"B","x":1}]}}`,
	} {
		before := body(t, stored)
		after := object.With(before, object.Path{"status", "conditions"}, []any{object.Body{"type": "A"}})
		document := written(before, conditions().Edits(before, after))
		if _, err := apply(t, document, stored); err != nil {
			t.Errorf("%s: %v", stored, err)
		}
		if got, err := apply(t, document, newer); err == nil {
			t.Errorf("%s was overwritten: %s", newer, got)
		}
	}
}

func TestSeveralKeysNameOneItem(t *testing.T) {
	before := body(t, `{"spec":{"ports":[{"port":53,"protocol":"TCP"}]}}`)
	after := body(t, `{"spec":{"ports":[{"port":53,"protocol":"TCP","name":"dns"},{"port":53,"protocol":"UDP"}]}}`)
	newest := body(t, `{"spec":{"ports":[{"port":80},{"port":53,"protocol":"TCP"}]}}`)
	want := body(t, `{"spec":{"ports":[{"port":80},{"port":53,"protocol":"TCP","name":"dns"},{"port":53,"protocol":"UDP"}]}}`)
	if diff := cmp.Diff(want, patch.Apply(newest, conditions().Edits(before, after))); diff != "" {
		t.Error(diff)
	}
}

// A later handler sets a field differently than an earlier one did.
func TestTouchesThatContradictEachOther(t *testing.T) {
	for name, test := range map[string]struct {
		start, first, second string
		want                 []string
	}{
		"another value":            {`{}`, `{"phase":"a"}`, `{"phase":"b"}`, []string{"status.phase"}},
		"other fields":             {`{}`, `{"a":1}`, `{"a":1,"b":1}`, nil},
		"taken away":               {`{}`, `{"a":1}`, `{}`, []string{"status.a"}},
		"put back":                 {`{"a":1}`, `{}`, `{"a":1}`, []string{"status.a"}},
		"its parent":               {`{}`, `{"a":{"b":1}}`, `{"a":7}`, []string{"status.a"}},
		"beside it":                {`{}`, `{"a":{"b":1}}`, `{"a":{"b":1,"c":1}}`, nil},
		"below it":                 {`{}`, `{"a":7}`, `{"a":{"b":1}}`, []string{"status.a"}},
		"into an empty map":        {`{}`, `{"a":{}}`, `{"a":{"b":1}}`, nil},
		"other conditions":         {`{}`, `{"conditions":[{"type":"A"}]}`, `{"conditions":[{"type":"A"},{"type":"B"}]}`, nil},
		"another item of a list":   {`{}`, `{"list":["a"]}`, `{"list":["a","b"]}`, nil},
		"an item of a list leaves": {`{}`, `{"list":["a"]}`, `{"list":["b"]}`, []string{"status.list"}},
		"one condition": {
			`{}`, `{"conditions":[{"type":"A","s":1},{"type":"B","s":1}]}`, `{"conditions":[{"type":"A","s":2},{"type":"B","s":1}]}`,
			[]string{"status.conditions.A"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := func(text string) object.Body { return body(t, `{"status":`+text+`}`) }
			touches := func(from, to string) []patch.Touch {
				return patch.Touches(conditions().Edits(status(from), status(to)))
			}
			found := contradictions(touches(test.first, test.second), touches(test.start, test.first))
			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func contradictions(later, earlier []patch.Touch) []string {
	var found []string
	for _, second := range later {
		for _, first := range earlier {
			if second.Contradicts(first) {
				found = append(found, second.Path.String())
			}
		}
	}
	return found
}
