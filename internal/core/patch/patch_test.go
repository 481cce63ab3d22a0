package patch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

func body(tb testing.TB, text string) object.Body {
	tb.Helper()
	var decoded object.Body
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return decoded
}

// apply applies a document with the library that the API server uses.
func apply(tb testing.TB, document *patch.Document, to string) (string, error) {
	tb.Helper()
	operations, err := json.Marshal(document.Operations())
	if err != nil {
		tb.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		tb.Fatalf("%s: %v", operations, err)
	}
	result, err := decoded.Apply([]byte(to))
	return string(result), err
}

func TestOnlyTouchedFieldsAreWritten(t *testing.T) {
	before := body(t, `{"spec": {"a": 1, "b": {"c": 2, "d": 3}}, "status": {"phase": "x", "list": [1]}}`)
	after := body(t, `{"spec": {"a": 1, "b": {"c": 5}}, "status": {"phase": "x", "list": [1, 2], "new": true}}`)
	want := []patch.Edit{
		{Path: object.Path{"spec", "b", "c"}, Value: 5.0},
		{Path: object.Path{"spec", "b", "d"}, Remove: true},
		{
			Path: object.Path{"status", "list"}, Value: []any{1.0, 2.0},
			List: &patch.ListEdit{Before: []any{1.0}, After: []any{1.0, 2.0}},
		},
		{Path: object.Path{"status", "new"}, Value: true},
	}
	edits := patch.Lists(nil).Edits(before, after)
	if diff := cmp.Diff(want, edits); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(after, patch.Apply(before, edits)); diff != "" {
		t.Errorf("applied: %s", diff)
	}
	rest, status := patch.Split(edits)
	if len(rest) != 2 || len(status) != 2 {
		t.Errorf("split into %v and %v", rest, status)
	}
}

func TestAnAddedMapIsWrittenFieldByField(t *testing.T) { // Another client may be adding it at the same time.
	edits := patch.Lists(nil).Edits(body(t, `{"a": 1}`), body(t, `{"a": {"b": 1}, "status": {"x": {"y": 1}, "empty": {}}}`))
	want := []patch.Edit{
		{Path: object.Path{"a"}, Value: object.Body{"b": 1.0}},
		{Path: object.Path{"status", "empty"}, Value: object.Body{}},
		{Path: object.Path{"status", "x", "y"}, Value: 1.0},
	}
	if diff := cmp.Diff(want, edits); diff != "" {
		t.Error(diff)
	}
}

func TestTheLastLabelOrAnnotationIsRemovedAlone(t *testing.T) { // Another client may be adding one at the same time.
	edits := patch.Lists(nil).Edits(
		body(t, `{"metadata": {"annotations": {"a": "1", "b": "2"}, "labels": {"c": "3"}}, "status": {"x": {"y": 1}}}`), body(t, `{"metadata": {"labels": {}}, "status": {}}`))
	want := []patch.Edit{
		{Path: object.Path{"metadata", "annotations", "a"}, Remove: true},
		{Path: object.Path{"metadata", "annotations", "b"}, Remove: true},
		{Path: object.Path{"metadata", "labels", "c"}, Remove: true},
		{Path: object.Path{"status", "x"}, Remove: true},
	}
	if diff := cmp.Diff(want, edits); diff != "" {
		t.Error(diff)
	}
}

func TestForbiddenEditsNameTheFieldAndTheRemedy(t *testing.T) {
	for path, remedy := range map[string]string{
		"metadata.finalizers": "OnDelete", "metadata.ownerReferences": "Apply",
		"metadata.name": "do not change it", "apiVersion": "do not change it", "kind": "do not change it",
	} {
		parsed, _ := object.ParsePath(path)
		err := patch.Allowed([]patch.Edit{{Path: parsed}})
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), remedy) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"spec", "status.phase", "metadata.labels.a", "metadata.annotations.b", "data.k"} {
		parsed, _ := object.ParsePath(path)
		if err := patch.Allowed([]patch.Edit{{Path: parsed}}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestDocumentsMakeMissingParents(t *testing.T) {
	const object1 = `{"metadata":{"uid":"u"},"spec":{"a":1}}`
	document := patch.New(body(t, object1))
	document.Edit(patch.Edit{Path: object.Path{"status", "records", "op.example.com"}, Value: "text"})
	document.Edit(patch.Edit{Path: object.Path{"status", "phase"}, Value: "x"})
	document.Edit(patch.Edit{Path: object.Path{"spec", "none"}, Remove: true})
	document.Edit(patch.Edit{Path: object.Path{"spec", "a"}, Remove: true})
	got, err := apply(t, document, object1)
	if err != nil {
		t.Fatal(err)
	}
	want := body(t, `{"metadata":{"uid":"u"},"spec":{},"status":{"phase":"x","records":{"op.example.com":"text"}}}`)
	if diff := cmp.Diff(want, body(t, got)); diff != "" {
		t.Error(diff)
	}
}

func TestALateWriteDoesNotLandOnARecreatedObject(t *testing.T) {
	document := patch.New(body(t, `{"metadata":{"uid":"old"}}`))
	document.Edit(patch.Edit{Path: object.Path{"metadata", "x"}, Value: "y"})
	if got, err := apply(t, document, `{"metadata":{"uid":"new"}}`); err == nil {
		t.Errorf("the document was applied: %s", got)
	}
}

func TestAWriteTestsTheRecordItCameFrom(t *testing.T) {
	at := object.Path{"metadata", "annotations", "op.example.com/record"}
	const stored = `{"metadata":{"uid":"u","annotations":{"op.example.com/record":"one"}}}`
	document := patch.New(body(t, stored))
	document.Test(at)
	document.Edit(patch.Edit{Path: at, Value: "two"})
	got, err := apply(t, document, stored)
	if err != nil || !strings.Contains(got, "two") {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := apply(t, document, strings.Replace(stored, `"one"`, `"other"`, 1)); err == nil {
		t.Errorf("a newer record was overwritten: %s", got)
	}
}

func TestFinalizersOfOthersStay(t *testing.T) { // docs/concepts/scenarios.md, 16 and 17
	for name, test := range map[string]struct{ have, add, remove string }{
		"none":   {`{"metadata":{"uid":"u"}}`, `["us"]`, ``},
		"others": {`{"metadata":{"uid":"u","finalizers":["a","b"]}}`, `["a","b","us"]`, `["a","b"]`},
		"ours":   {`{"metadata":{"uid":"u","finalizers":["a","us","b","us"]}}`, `["a","us","b","us"]`, `["a","b"]`},
	} {
		document := patch.New(body(t, test.have))
		document.AddFinalizer("us")
		if got, err := apply(t, document, test.have); err != nil || !sameFinalizers(t, got, test.add) {
			t.Errorf("%s: added: %s, %v", name, got, err)
		}
		document = patch.New(body(t, test.have))
		document.RemoveFinalizer("us")
		if (name == "ours") == document.Empty() {
			t.Errorf("%s: removal empty: %v", name, document.Empty())
		}
		if got, err := apply(t, document, test.have); err != nil || test.remove != "" && !sameFinalizers(t, got, test.remove) {
			t.Errorf("%s: removed: %s, %v", name, got, err)
		}
	}
	document := patch.New(body(t, `{"metadata":{"uid":"u","finalizers":["a","us"]}}`))
	document.RemoveFinalizer("us")
	if got, err := apply(t, document, `{"metadata":{"uid":"u","finalizers":["us","a"]}}`); err == nil {
		t.Errorf("removed from a position where it is no longer: %s", got)
	}
	document = patch.New(body(t, `{"metadata":{"uid":"u"}}`))
	document.AddFinalizer("us")
	if got, err := apply(t, document, `{"metadata":{"uid":"u","finalizers":["a"]}}`); err == nil {
		t.Errorf("the first finalizer of another writer was overwritten: %s", got)
	}
}

func sameFinalizers(t *testing.T, text, want string) bool {
	return cmp.Equal(object.List(body(t, text), "metadata", "finalizers"), object.List(body(t, `{"want":`+want+`}`), "want"))
}

func TestGuessDropsWhatGoTypesWriteForNothing(t *testing.T) {
	given := body(t, `{"metadata":{"creationTimestamp":null,"name":"n"},"status":{"deep":{}},"spec":{"list":[{}],"zero":0}}`)
	want := body(t, `{"metadata":{"name":"n"},"spec":{"list":[{}],"zero":0}}`)
	if diff := cmp.Diff(want, patch.Guess(given)); diff != "" {
		t.Error(diff)
	}
}

func TestPointersAreEscaped(t *testing.T) {
	if got := patch.Pointer(object.Path{"a/b", "c~d"}); got != "/a~1b/c~0d" {
		t.Error(got)
	}
}

// FuzzEdits checks that a document with the edits between two bodies turns one into the other.
func FuzzEdits(f *testing.F) {
	f.Add(`{"a":1,"b":{"c":[1]}}`, `{"a":{"x":"y"},"b":{"d":2}}`)
	f.Add(`{}`, `{"a~b":{"c/d":null}}`)
	f.Fuzz(func(t *testing.T, one, other string) {
		var before, after object.Body
		if json.Unmarshal([]byte(one), &before) != nil || json.Unmarshal([]byte(other), &after) != nil {
			return // Not JSON objects.
		}
		before, after = withoutNullFields(before).(object.Body), withoutNullFields(after).(object.Body)
		one = text(t, before)
		edits := patch.Lists(nil).Edits(before, after)
		if rest := object.Diff(patch.Apply(before, edits), after); len(rest) > 0 {
			t.Errorf("%s to %s: %v is left", one, other, rest)
		}
		document := patch.New(before)
		for _, edit := range edits {
			document.Edit(edit)
		}
		if document.Empty() != (len(edits) == 0) {
			t.Errorf("%s to %s: %v", one, other, document.Operations())
		}
		got, err := apply(t, document, one)
		if err != nil {
			t.Fatalf("%s to %s: %v: %v", one, other, document.Operations(), err)
		}
		if rest := object.Diff(body(t, got), after); len(rest) > 0 {
			t.Errorf("%s to %s: %v: %v is left", one, other, document.Operations(), rest)
		}
	})
}

// withoutNullFields drops nulls, which are written as absent fields.
func withoutNullFields(value any) any {
	switch value := value.(type) {
	case object.Body:
		kept := object.Body{}
		for key, field := range value {
			if field != nil {
				kept[key] = withoutNullFields(field)
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(value))
		for _, item := range value {
			kept = append(kept, withoutNullFields(item))
		}
		return kept
	default:
		return value
	}
}
