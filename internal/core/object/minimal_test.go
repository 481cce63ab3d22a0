package object_test

import (
	"encoding/json"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
)

// filling restores defaults, as a schema and the zero values of a Go type do. Each map that it knows also gets the fields of more.
func filling(more map[string]object.Defaults) func(object.Body) object.Body {
	known := func(fields map[string]object.Defaults) object.Defaults {
		maps.Copy(fields, more)
		return object.Defaults{Fields: fields}
	}
	optional := known(map[string]object.Defaults{"mode": {Value: "strict"}})
	always := known(map[string]object.Defaults{"zero": {Value: 0.0}, "optional": optional})
	always.Value = object.Body{"given": true}
	item := known(map[string]object.Defaults{"on": {Value: false}, "always": always})
	defaults := known(map[string]object.Defaults{
		"size": {Value: 3.0}, "always": always, "optional": optional,
		"list": {Items: &item}, "map": {Others: &item}, "empty": {Value: []any{}},
	})
	return func(body object.Body) object.Body {
		filled, _ := defaults.Fill(body).(object.Body)
		return filled
	}
}

// later is what the next release additionally fills in: a part named new.
func later() map[string]object.Defaults {
	return map[string]object.Defaults{
		"new": {Value: object.Body{"deep": "x"}, Fields: map[string]object.Defaults{"more": {Value: 1.0}}},
	}
}

// A new field or default is not a change of an essence of which only digests are stored.
func TestTheMinimalFormLeavesOutWhatIsFilledIn(t *testing.T) {
	for given, want := range map[string]string{
		`{}`:                                           `{}`,
		`{"size": 3}`:                                  `{}`,
		`{"size": 0}`:                                  `{"size": 0}`,
		`{"size": null, "other": ""}`:                  `{"size": null, "other": ""}`,
		`{"optional": {}}`:                             `{"optional": {}}`,
		`{"optional": {"mode": "strict"}}`:             `{"optional": {}}`,
		`{"optional": {"mode": ""}}`:                   `{"optional": {"mode": ""}}`,
		`{"always": {}}`:                               `{"always": {}}`, // Without the map, restoring would give more.
		`{"always": {"given": true, "zero": 0}}`:       `{}`,
		`{"always": {"given": true, "zero": 1}}`:       `{"always": {"given": true, "zero": 1}}`,
		`{"always": {"optional": {}, "zero": 1}}`:      `{"always": {"optional": {}, "zero": 1}}`,
		`{"list": [{}, {"on": true}, 1, [{}]]}`:        `{"list": [{}, {"on": true}, 1, [{}]]}`,
		`{"list": [{"always": {"optional": {}}}]}`:     `{"list": [{"always": {"optional": {}}}]}`,
		`{"list": [], "empty": []}`:                    `{"list": []}`,
		`{"list": {"on": false}, "empty": [{}]}`:       `{"list": {"on": false}, "empty": [{}]}`,
		`{"map": {"a": {"on": false}, "b": {"c": 1}}}`: `{"map": {"a": {}, "b": {"c": 1}}}`,
	} {
		for _, more := range []map[string]object.Defaults{nil, later()} {
			restore := filling(more)
			full := restore(body(t, given))
			kept := restore(body(t, given))
			minimal := object.Minimal(full, restore)
			if diff := cmp.Diff(body(t, want), minimal); diff != "" {
				t.Errorf("%s: %s", given, diff)
			}
			if diff := cmp.Diff(full, restore(minimal)); diff != "" {
				t.Errorf("%s: the restored body differs: %s", given, diff)
			}
			if diff := cmp.Diff(kept, full); diff != "" {
				t.Errorf("%s: the original was modified: %s", given, diff)
			}
		}
	}
}

// FuzzMinimal checks that a minimal form loses nothing, and does not contain what a later release fills in.
func FuzzMinimal(f *testing.F) {
	f.Add(`{"size":3,"always":{"given":true,"zero":0}}`)
	f.Add(`{"list":[{"on":false,"always":{"optional":{"mode":"x"}}},[{}],null],"map":{"a":{},"b":2}}`)
	f.Fuzz(func(t *testing.T, given string) {
		var stored object.Body
		if json.Unmarshal([]byte(given), &stored) != nil || strings.Contains(given, "new") || strings.Contains(given, `\u`) {
			return // Not a JSON object, or one that has fields of the later release.
		}
		now, then := filling(nil), filling(later())
		minimal := object.Minimal(now(stored), now)
		if !object.Equal(now(minimal), now(stored)) {
			t.Errorf("%s: %v is restored as %v", given, minimal, now(minimal))
		}
		if upgraded := object.Minimal(then(stored), then); !object.Equal(upgraded, minimal) {
			t.Errorf("%s: minimal form is %v, and %v in the later release", given, minimal, upgraded)
		}
	})
}

func TestTheFrameOfAViewHasWhatItsFieldsWouldBeIn(t *testing.T) {
	essence := body(t, `{"spec": {"a": {"b": 1}, "c": "text"}, "status": {"x": 1}}`)
	for fields, want := range map[string]string{
		"":                    `{"spec": {"a": {"b": 1}, "c": "text"}}`,
		"spec.a.b":            `{"spec": {"a": {"b": 1}}}`,
		"spec.a.none":         `{"spec": {"a": {}}}`,
		"spec.c.none":         `{"spec": {}}`,
		"spec.none.none.none": `{"spec": {}}`,
		"none.none":           `{}`,
		"spec.a.b spec.a.d":   `{"spec": {"a": {"b": 1}}}`,
		"spec.a.d spec.a.b":   `{"spec": {"a": {"b": 1}}}`,
		"spec.a spec.a.d":     `{"spec": {"a": {"b": 1}}}`,
	} {
		var paths []object.Path
		for field := range strings.FieldsSeq(fields) {
			path, err := object.ParsePath(field)
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		if diff := cmp.Diff(body(t, want), object.Frame(essence, paths)); diff != "" {
			t.Errorf("%s: %s", fields, diff)
		}
	}
}

// nested returns maps in maps, this many levels deep, each beside a number.
func nested(levels int) object.Body {
	inner := object.Body{"size": 3.0}
	for range levels {
		inner = object.Body{"optional": inner, "size": 3.0}
	}
	return inner
}

// A free-form field can have maps in maps as deep as its author likes. Their cost must not grow with the square of the depth.
func TestDeeplyNestedMapsCostLittleMemory(t *testing.T) {
	const limit = 16 << 20
	deep, other := nested(2000), object.Body{"optional": nested(1999)}
	for name, operation := range map[string]func(){
		"Minimal": func() { object.Minimal(deep, filling(nil)) },
		"Diff":    func() { object.Diff(deep, other) },
	} {
		if allocated := allocatedBy(operation); allocated > limit {
			t.Errorf("%s allocates %d MiB for maps that are nested 2,000 levels deep, want at most %d MiB", name, allocated>>20, limit>>20)
		}
	}
}

func allocatedBy(operation func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	operation()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What is nested deeper than the limit is one value: a change of it is found, and is a change of the whole.
func TestMapsThatAreNestedTooDeepAreComparedAsAWhole(t *testing.T) {
	deep := func(value any) object.Body {
		inner := object.Body{"leaf": value, "same": 1.0}
		for range object.DepthLimit + 5 {
			inner = object.Body{"a": inner}
		}
		return inner
	}
	if found := object.Diff(deep(1.0), deep(1.0)); len(found) != 0 {
		t.Errorf("equal bodies differ: %v", found)
	}
	found := object.Diff(deep(1.0), deep(2.0))
	if len(found) != 1 || found[0].Op != object.Changed || len(found[0].Path) != object.DepthLimit+1 {
		t.Errorf("got %d differences, want one at depth %d", len(found), object.DepthLimit+1)
	}
}
