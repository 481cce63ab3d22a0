package object_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
)

func body(tb testing.TB, text string) object.Body {
	tb.Helper()
	var decoded object.Body
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return decoded
}

func TestPathsAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]object.Path{
		"spec":        {"spec"},
		"spec.size":   {"spec", "size"},
		"a.b.c":       {"a", "b", "c"},
		"m.l[x.y/z]":  {"m", "l", "x.y/z"},
		"m[x.y/z].k":  {"m", "x.y/z", "k"},
		"m[x.y][u.v]": {"m", "x.y", "u.v"},
	} {
		got, err := object.ParsePath(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if got.String() != text {
			t.Errorf("%s is written %s", text, got)
		}
	}
}

func TestBadPathsAreRefused(t *testing.T) {
	for _, text := range []string{"", ".", "a.", ".a", "a..b", "a[", "a[]", "a[b", "[", "a[b]."} {
		if path, err := object.ParsePath(text); err == nil {
			t.Errorf("%q was read as %v", text, path)
		}
	}
}

// Which parts of an object belong to the essence.
func TestEssenceLeavesOutWhatMeansNothing(t *testing.T) {
	full := body(t, `{
		"apiVersion": "g/v1", "kind": "K", "spec": {"size": 1}, "data": {"k": "v"},
		"status": {"phase": "x", "size": 3},
		"metadata": {
			"name": "n", "uid": "u", "generation": 3, "resourceVersion": "7", "finalizers": ["f"],
			"ownerReferences": [{}], "managedFields": [{}],
			"labels": {"team": "a"},
			"annotations": {
				"kept": "yes", "other.example.com/record": "a vinyl",
				"kubectl.kubernetes.io/last-applied-configuration": "{}",
				"op.example.com/recreate": "token", "op.example.com/record": "{\"v\":1,\"uid\":\"u\"}",
				"op.example.com/applied-for": "edited", "op.example.com/former-uid": "f",
				"b.example.com/applied-for": "{\"kind\":\"K.g\",\"name\":\"n\",\"uid\":\"u\"}", "c.example.com/applied-for": "a job",
				"kopf.zalando.org/last-handled-configuration": "{}", "sub.kopf.zalando.org/x": "y",
				"marked.example.com/kopf-managed": "yes", "marked.example.com/handler": "{}"
			}
		}
	}`)
	want := body(t, `{"spec": {"size": 1}, "data": {"k": "v"},
		"metadata": {"labels": {"team": "a"}, "annotations": {"kept": "yes", "other.example.com/record": "a vinyl",
			"op.example.com/former-uid": "f", "c.example.com/applied-for": "a job"}}}`)
	if diff := cmp.Diff(want, object.Essence(full, "op.example.com", nil)); diff != "" {
		t.Error(diff)
	}
	want["status"] = object.Body{"size": 3.0}
	if diff := cmp.Diff(want, object.Essence(full, "op.example.com", []object.Path{{"status", "size"}, {"status", "none"}})); diff != "" {
		t.Errorf("with a status field: %s", diff)
	}
	if diff := cmp.Diff(object.Body{}, object.Essence(body(t, `{"metadata": {"labels": {}, "annotations": {}}}`), "op.example.com", nil)); diff != "" {
		t.Errorf("empty: %s", diff)
	}
}

// A view is the essence reduced to the handler's fields, without the status for handlers that name none.
func TestViews(t *testing.T) {
	essence := body(t, `{"spec": {"a": 1, "b": {"c": 2, "d": 3}}, "status": {"x": 1}}`)
	if diff := cmp.Diff(body(t, `{"spec": {"a": 1, "b": {"c": 2, "d": 3}}}`), object.View(essence, nil)); diff != "" {
		t.Error(diff)
	}
	fields := []object.Path{{"spec", "b", "c"}, {"status", "x"}, {"spec", "missing"}}
	if diff := cmp.Diff(body(t, `{"spec": {"b": {"c": 2}}, "status": {"x": 1}}`), object.View(essence, fields)); diff != "" {
		t.Error(diff)
	}
}

// Scenarios 40 and 41 (docs/concepts/scenarios.md).
func TestDiff(t *testing.T) {
	before := body(t, `{"same": 1, "gone": 1, "changed": "a", "list": [1], "deep": {"x": 1, "y": 2}, "shape": {"a": 1}, "null": null, "nulled": 1}`)
	after := body(t, `{"same": 1.0, "new": 2, "changed": "b", "list": [1, 2], "deep": {"x": 1, "y": 3, "z": 4}, "shape": [1], "null": 5, "nulled": null}`)
	want := []object.Difference{
		{Op: object.Changed, Path: object.Path{"changed"}, Old: "a", New: "b"},
		{Op: object.Changed, Path: object.Path{"deep", "y"}, Old: 2.0, New: 3.0},
		{Op: object.Added, Path: object.Path{"deep", "z"}, New: 4.0},
		{Op: object.Removed, Path: object.Path{"gone"}, Old: 1.0},
		{Op: object.Changed, Path: object.Path{"list"}, Old: []any{1.0}, New: []any{1.0, 2.0}},
		{Op: object.Added, Path: object.Path{"new"}, New: 2.0},
		{Op: object.Added, Path: object.Path{"null"}, New: 5.0},
		{Op: object.Removed, Path: object.Path{"nulled"}, Old: 1.0},
		{Op: object.Changed, Path: object.Path{"shape"}, Old: object.Body{"a": 1.0}, New: []any{1.0}},
	}
	if diff := cmp.Diff(want, object.Diff(before, after)); diff != "" {
		t.Error(diff)
	}
	if found := object.Diff(before, before); len(found) != 0 {
		t.Errorf("a body differs from itself: %v", found)
	}
}

func TestTheDiffOfFieldsIsAtTheirOwnPaths(t *testing.T) {
	before := body(t, `{"spec": {"a": 1, "b": {"x": 1}}}`)
	after := body(t, `{"spec": {"a": 2, "b": {"x": 2}, "c": 3}, "metadata": {"labels": {"l": "1"}}, "status": {"s": 1}}`)
	fields := []object.Path{{"metadata", "labels"}, {"spec", "b"}, {"spec", "c", "none"}, {"status", "s"}}
	want := []object.Difference{
		{Op: object.Added, Path: object.Path{"metadata", "labels"}, New: object.Body{"l": "1"}},
		{Op: object.Changed, Path: object.Path{"spec", "b", "x"}, Old: 1.0, New: 2.0},
		{Op: object.Added, Path: object.Path{"status", "s"}, New: 1.0},
	}
	if diff := cmp.Diff(want, object.DiffFields(before, after, fields)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(object.Diff(before["spec"].(object.Body), after["spec"].(object.Body)), trimmed(object.DiffFields(before, after, nil))); diff != "" {
		t.Errorf("without fields: %s", diff)
	}
}

// trimmed returns what is below spec, with paths relative to it.
func trimmed(found []object.Difference) []object.Difference {
	var below []object.Difference
	for _, difference := range found {
		if difference.Path.Under("spec") {
			difference.Path = difference.Path[1:]
			below = append(below, difference)
		}
	}
	return below
}

func TestNumbersAreEqualByValue(t *testing.T) {
	for _, pair := range [][2]any{{int64(1), 1.0}, {1.0, int64(1)}, {[]any{int64(2)}, []any{2.0}}} {
		if !object.Equal(pair[0], pair[1]) {
			t.Errorf("%v and %v differ", pair[0], pair[1])
		}
		if object.Digest(pair[0]) != object.Digest(pair[1]) {
			t.Errorf("the digests of %v and %v differ", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]any{
		{int64(1), "1"},
		{1.5, int64(1)},
		{nil, object.Body{}},
		{"a", []any{"a"}},
		{object.Body{"a": nil}, object.Body{"b": nil}},
		{object.Body{"a": nil}, object.Body{"a": nil, "b": nil}},
		{[]any{"a"}, []any{"b"}},
		{[]any{"a"}, []any{}},
		{1.5, 2.5},
	} {
		if object.Equal(pair[0], pair[1]) {
			t.Errorf("%v and %v are equal", pair[0], pair[1])
		}
	}
}

func TestReading(t *testing.T) {
	given := body(t, `{"metadata": {"name": "n", "finalizers": ["a", 1, "b"]}, "n": 1}`)
	for path, want := range map[string]string{"metadata.name": "n", "metadata.none": "", "n": "", "n.deeper": "", "none.deeper": ""} {
		parsed, err := object.ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := object.Text(given, parsed...); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if diff := cmp.Diff([]string{"a", "b"}, object.List(given, "metadata", "finalizers")); diff != "" {
		t.Error(diff)
	}
	if found := object.List(given, "metadata", "name"); len(found) != 0 {
		t.Errorf("a text was read as the list %v", found)
	}
	if (object.Path{"spec"}).Under("spec", "size") || !(object.Path{"spec", "size"}).Under("spec") || (object.Path{"spec"}).Under("status") {
		t.Error("Under")
	}
	if diff := cmp.Diff(given, object.With(given, nil, "x")); diff != "" {
		t.Errorf("an empty path changed the body: %s", diff)
	}
	if got := object.RecordAnnotation("op.example.com"); got != "op.example.com/record" {
		t.Error(got)
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	defaults := object.Defaults{Fields: map[string]object.Defaults{
		"size": {Value: 3.0},
		"deep": {Value: object.Body{}, Fields: map[string]object.Defaults{"a": {Value: "x"}}},
		"list": {Items: &object.Defaults{Fields: map[string]object.Defaults{"b": {Value: true}}}},
		"map":  {Others: &object.Defaults{Fields: map[string]object.Defaults{"c": {Value: 1.0}}}},
		"none": {Fields: map[string]object.Defaults{"d": {Value: 1.0}}},
	}}
	given := body(t, `{"list": [{}, {"b": false}, 1], "map": {"k": {}}, "other": null}`)
	kept := body(t, `{"list": [{}, {"b": false}, 1], "map": {"k": {}}, "other": null}`)
	want := body(t, `{"size": 3, "deep": {"a": "x"}, "list": [{"b": true}, {"b": false}, 1], "map": {"k": {"c": 1}}, "other": null}`)
	if diff := cmp.Diff(want, defaults.Fill(given)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(kept, given); diff != "" {
		t.Errorf("the original was modified: %s", diff)
	}
	if defaults.Empty() || !(object.Defaults{}).Empty() {
		t.Error("Empty")
	}
}

func TestChangesLeaveTheOriginalAlone(t *testing.T) {
	original := body(t, `{"spec": {"a": {"b": 1}, "c": 2}}`)
	kept := body(t, `{"spec": {"a": {"b": 1}, "c": 2}}`)
	set := object.With(original, object.Path{"spec", "a", "b"}, 5)
	cut := object.Without(original, object.Path{"spec", "a", "b"})
	through := object.With(original, object.Path{"spec", "c", "d"}, 1)
	if diff := cmp.Diff(kept, original); diff != "" {
		t.Errorf("the original was modified: %s", diff)
	}
	if got, _ := object.Get(set, "spec", "a", "b"); got != 5 {
		t.Errorf("set: %v", set)
	}
	if _, found := object.Get(cut, "spec", "a", "b"); found {
		t.Errorf("cut: %v", cut)
	}
	if got, _ := object.Get(through, "spec", "c", "d"); got != 1 {
		t.Errorf("a value on the way was not replaced: %v", through)
	}
	if diff := cmp.Diff(original, object.Without(original, object.Path{"no", "such"})); diff != "" {
		t.Error(diff)
	}
}

// FuzzDiff checks that a diff leads from one body to the other, and is empty exactly for equal ones.
func FuzzDiff(f *testing.F) {
	f.Add(`{"a":1}`, `{"a":{"b":2}}`)
	f.Add(`{"a":{"b":[1,2]},"c":null}`, `{"a":{"b":[1],"d":"x"}}`)
	f.Fuzz(func(t *testing.T, one, other string) {
		var before, after object.Body
		if json.Unmarshal([]byte(one), &before) != nil || json.Unmarshal([]byte(other), &after) != nil {
			return // Not JSON objects.
		}
		found := object.Diff(before, after)
		got := before
		for _, difference := range found {
			if difference.Op == object.Removed {
				got = object.Without(got, difference.Path)
			} else {
				got = object.With(got, difference.Path, difference.New)
			}
		}
		if rest := object.Diff(got, after); len(rest) != 0 {
			t.Errorf("from %s to %s: %v is left of %v", one, other, rest, found)
		}
		if object.Equal(before, after) && len(found) > 0 {
			t.Errorf("equal, but %v", found)
		}
	})
}
