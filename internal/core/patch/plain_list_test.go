package patch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// withList returns an object with a list that has no keys.
func withList(tb testing.TB, list string) object.Body {
	tb.Helper()
	if list == "null" {
		return body(tb, `{"metadata":{"uid":"u"},"spec":{}}`)
	}
	return body(tb, fmt.Sprintf(`{"metadata":{"uid":"u"},"spec":{"list":%s}}`, list))
}

// Scenario 58 (docs/concepts/scenarios.md): what a handler changed in a list is changed in the list as it is at the time of the write.
func TestListsWithoutKeysAreMergedItemByItem(t *testing.T) {
	for name, test := range map[string]struct{ before, after, newest, want string }{
		"appended on both sides":           {`["a"]`, `["a","ours"]`, `["a","theirs"]`, `["a","theirs","ours"]`},
		"added to an absent list":          {`null`, `["ours"]`, `["theirs"]`, `["theirs","ours"]`},
		"added on both sides, once":        {`["a"]`, `["a","b"]`, `["a","b"]`, `["a","b"]`},
		"inserted at the front":            {`["a","b"]`, `["x","a","b"]`, `["a","b","c"]`, `["x","a","b","c"]`},
		"inserted in the middle":           {`["a","b"]`, `["a","x","b"]`, `["0","a","b"]`, `["0","a","x","b"]`},
		"inserted after an item that left": {`["a","b","c"]`, `["a","b","x","c"]`, `["a","c"]`, `["a","x","c"]`},
		"removed beside others":            {`["a","b"]`, `["a"]`, `["a","b","c"]`, `["a","c"]`},
		"removed on both sides":            {`["a","b"]`, `["a"]`, `["a"]`, `["a"]`},
		"removed wholly, others stay":      {`["a"]`, `null`, `["a","b"]`, `["b"]`},
		"removed wholly":                   {`["a"]`, `null`, `["a"]`, `null`},
		"replaced where another appends":   {`["a","b"]`, `["a","x"]`, `["a","b","c"]`, `["a","x","c"]`},
		"two items of the same value":      {`["a","a"]`, `["a"]`, `["a","a","b"]`, `["a","b"]`},
		"sorted":                           {`["b","a"]`, `["a","b"]`, `["b","a","c"]`, `["a","c","b"]`},
		"emptied":                          {`["a"]`, `[]`, `["a"]`, `[]`},
		"no list any more":                 {`["a"]`, `["a","b"]`, `"text"`, `["a","b"]`},
		"one field of a map": {
			`[{"name":"a","x":1},{"name":"b","x":1}]`, `[{"name":"a","x":2},{"name":"b","x":1}]`,
			`[{"name":"0"},{"name":"a","x":1,"y":5},{"name":"b","x":9}]`, `[{"name":"0"},{"name":"a","x":2,"y":5},{"name":"b","x":9}]`,
		},
		"the first removed, the second changed": {
			`[{"name":"a","x":1},{"name":"b","x":1}]`, `[{"name":"b","x":2}]`,
			`[{"name":"a","x":1},{"name":"b","x":1,"y":5}]`, `[{"name":"b","x":2,"y":5}]`,
		},
		"without names": {
			`[{"image":"a"},{"image":"b"}]`, `[{"image":"a"},{"image":"c"}]`,
			`[{"image":"a"},{"image":"b"},{"image":"d"}]`, `[{"image":"a"},{"image":"c"},{"image":"d"}]`,
		},
		"lists in items": {
			`[{"name":"a","args":["x"]}]`, `[{"name":"a","args":["x","ours"]}]`,
			`[{"name":"a","args":["x","theirs"]}]`, `[{"name":"a","args":["x","theirs","ours"]}]`,
		},
		"lists in lists": {`[["a"],["b"]]`, `[["a"],["b","ours"]]`, `[["0"],["a"],["b"]]`, `[["0"],["a"],["b","ours"]]`},
	} {
		t.Run(name, func(t *testing.T) {
			merges(t, withList(t, test.before), withList(t, test.after), withList(t, test.newest), withList(t, test.want))
		})
	}
}

// The handler has to run again when another client changed the same item.
func TestAnEditOfAnItemThatAnotherClientChangedIsContested(t *testing.T) {
	for name, test := range map[string]struct{ before, after, newest string }{
		"replaced on both sides":         {`["a"]`, `["ours"]`, `["theirs"]`},
		"changed here, removed there":    {`[{"name":"a","x":1}]`, `[{"name":"a","x":2}]`, `[]`},
		"removed here, changed there":    {`[{"name":"a","x":1}]`, `[]`, `[{"name":"a","x":2}]`},
		"changed and no name to tell":    {`[{"x":1}]`, `[{"x":2}]`, `[{"z":1}]`},
		"in a list of an item":           {`[{"name":"a","args":["x"]}]`, `[{"name":"a","args":["ours"]}]`, `[{"name":"a","args":["theirs"]}]`},
		"moved and changed, and is gone": {`[{"name":"a"},{"name":"b"}]`, `[{"name":"b"},{"name":"a","x":1}]`, `[{"name":"b"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			before, newest := withList(t, test.before), withList(t, test.newest)
			document := written(newest, patch.Lists(nil).Edits(before, withList(t, test.after)))
			if !document.Empty() || document.Contested().String() != "spec.list" {
				t.Errorf("contested: %q, operations: %v", document.Contested(), document.Operations())
			}
		})
	}
}

// A Go type that decodes a list itself can have another number of items than the API server. The list is then replaced as a whole, but only if it
// is still the list that the handler has changed. Otherwise the handler has to run again.
func TestAListWithAnotherLengthInTheGoTypeIsReplacedOnlyIfItIsUnchanged(t *testing.T) {
	const before, ours, stored = `[{"name":"a"},{"name":"b"},{"name":"c"}]`, `[{"name":"a"},{"name":"x"}]`, `["a,b","c"]`
	keyed := patch.Lists{{Path: object.Path{"spec", "list"}, Keys: []string{"name"}}}
	for name, test := range map[string]struct {
		after, stored, seen string // Seen is the stored list as the Go type writes it.
		want, contested     string
	}{
		"unchanged":                {ours, stored, before, ours, ""},
		"unchanged, removed here":  {`null`, stored, before, `null`, ""},
		"added by another client":  {ours, `["a,b","c,d"]`, `[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]`, `["a,b","c,d"]`, "spec.list"},
		"edited by another client": {ours, `["a,b","d"]`, `[{"name":"a"},{"name":"b"},{"name":"d"}]`, `["a,b","d"]`, "spec.list"},
		"edited, removed here":     {`null`, `["a,b","d"]`, `[{"name":"a"},{"name":"b"},{"name":"d"}]`, `["a,b","d"]`, "spec.list"},
	} {
		for form, lists := range map[string]patch.Lists{"without keys": nil, "with keys": keyed} {
			t.Run(name+" "+form, func(t *testing.T) {
				base := withList(t, test.stored)
				document := patch.Seen(base, withList(t, test.seen))
				for _, edit := range lists.Edits(withList(t, before), withList(t, test.after)) {
					document.Edit(edit)
				}
				got, err := apply(t, document, text(t, base))
				diff := cmp.Diff(withList(t, test.want), body(t, got))
				if err != nil || diff != "" || document.Contested().String() != test.contested {
					t.Errorf("contested: %q, want %q; error: %v; object (-want +got):\n%s", document.Contested(), test.contested, err, diff)
				}
			})
		}
	}
}

// What the Go type of a handler does not know, or writes in another form, stays as it is.
func TestAnItemKeepsWhatTheGoTypeDoesNotKnow(t *testing.T) {
	const stored = `[{"name":"web","image":"web:1","cpu":"1000m","rules":[{"exit":[42]}]},{"name":"log","profile":{"kind":"strict"}}]`
	const known = `[{"name":"web","image":"web:1","cpu":"1","since":null},{"name":"log","image":"","since":null}]`
	for name, test := range map[string]struct{ after, want string }{
		"a field": {
			`[{"name":"web","image":"web:2","cpu":"1","since":null},{"name":"log","image":"","since":null}]`,
			`[{"name":"web","image":"web:2","cpu":"1000m","rules":[{"exit":[42]}]},{"name":"log","profile":{"kind":"strict"}}]`,
		},
		"a new item": {
			`[{"name":"web","image":"web:1","cpu":"1","since":null},{"name":"log","image":"","since":null},{"name":"new","since":null}]`,
			`[{"name":"web","image":"web:1","cpu":"1000m","rules":[{"exit":[42]}]},{"name":"log","profile":{"kind":"strict"}},{"name":"new"}]`,
		},
		"another order": {
			`[{"name":"log","image":"","since":null},{"name":"web","image":"web:1","cpu":"1","since":null}]`,
			`[{"name":"log","profile":{"kind":"strict"}},{"name":"web","image":"web:1","cpu":"1000m","rules":[{"exit":[42]}]}]`,
		},
		"another item in its place": {
			`[{"name":"new","image":"x","cpu":"2","since":null},{"name":"log","image":"","since":null}]`,
			`[{"name":"new","image":"x","cpu":"2"},{"name":"log","profile":{"kind":"strict"}}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen, base := withList(t, known), withList(t, stored)
			document := patch.Seen(base, seen)
			for _, edit := range patch.Lists(nil).Edits(seen, withList(t, test.after)) {
				document.Edit(edit)
			}
			got, err := apply(t, document, text(t, base))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(withList(t, test.want), body(t, got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Edits that follow each other, as those of several handlers do, are made one after the other.
func TestLaterEditsOfAListSeeEarlierOnes(t *testing.T) {
	one, two, three := withList(t, `["a"]`), withList(t, `["a","b"]`), withList(t, `["b","c"]`)
	document := patch.New(withList(t, `["a","theirs"]`))
	for _, edit := range append(patch.Lists(nil).Edits(one, two), patch.Lists(nil).Edits(two, three)...) {
		document.Edit(edit)
	}
	got, err := apply(t, document, `{"metadata":{"uid":"u"},"spec":{"list":["a","theirs"]}}`)
	if err != nil || document.Contested() != nil {
		t.Fatal(err, document.Contested())
	}
	if diff := cmp.Diff(withList(t, `["theirs","b","c"]`), body(t, got)); diff != "" {
		t.Error(diff)
	}
}

// Only changed items are sent, and the list as it was.
func TestAnUnchangedItemIsNotSent(t *testing.T) {
	before := withList(t, `["a","b","c","d"]`)
	document := written(before, patch.Lists(nil).Edits(before, withList(t, `["a","c","d","e"]`)))
	want := []patch.Operation{
		{Op: "test", Path: "/metadata/uid", Value: "u"},
		{Op: "test", Path: "/spec/list", Value: []any{"a", "b", "c", "d"}},
		{Op: "remove", Path: "/spec/list/1"},
		{Op: "add", Path: "/spec/list/3", Value: "e"},
	}
	if diff := cmp.Diff(want, document.Operations()); diff != "" {
		t.Error(diff)
	}
}

// Whatever two clients do to a list, what only one of them did is kept.
func TestNoItemOfAnotherClientIsLost(t *testing.T) {
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		before := items(random, "a", 1+random.IntN(4))
		after, newest := edited(random, before, "ours"), edited(random, before, "theirs")
		base, start := listed(newest), listed(before)
		document := written(base, patch.Lists(nil).Edits(start, listed(after)))
		if document.Contested() != nil {
			continue
		}
		got, err := apply(t, document, text(t, base))
		if err != nil {
			t.Fatalf("seed %d: %v to %v onto %v: %v", seed, before, after, newest, err)
		}
		value, _ := object.Get(body(t, got), "spec", "list")
		merged, _ := value.([]any)
		for _, one := range slices.Concat(before, after, newest) {
			was, ours, theirs := slices.Contains(before, one), slices.Contains(after, one), slices.Contains(newest, one)
			if want := was && ours && theirs || !was && (ours || theirs); slices.Contains(merged, one) != want {
				t.Errorf("seed %d: %v to %v onto %v: %v in %v should be %v", seed, before, after, newest, one, merged, want)
			}
		}
	}
}

func listed(list []any) object.Body {
	return object.Body{"metadata": object.Body{"uid": "u"}, "spec": object.Body{"list": list}}
}

func items(random *rand.Rand, name string, count int) []any {
	list := make([]any, count)
	for i := range list {
		list[i] = fmt.Sprint(name, i, random.IntN(2))
	}
	return list
}

// edited returns a list with one to three changes.
func edited(random *rand.Rand, list []any, by string) []any {
	list = slices.Clone(list)
	for i := range 1 + random.IntN(3) {
		one := any(fmt.Sprint(by, i))
		at := random.IntN(len(list) + 1)
		switch {
		case at == len(list) || random.IntN(2) == 0:
			list = slices.Insert(list, at, one)
		case random.IntN(2) == 0:
			list = slices.Delete(list, at, at+1)
		default:
			list[at] = one
		}
	}
	return list
}

// Two clients add many items each.
func TestLongListsAreMerged(t *testing.T) {
	many := func(by string) []any {
		list := make([]any, 20_000)
		for i := range list {
			list[i] = fmt.Sprint(by, i)
		}
		return list
	}
	before := many("before")
	document := written(listed(append(many("theirs"), before...)), patch.Lists(nil).Edits(listed(before), listed(append(before, many("ours")...))))
	value, _ := document.Value(object.Path{"spec", "list"})
	if list, _ := value.([]any); len(list) != 60_000 {
		t.Errorf("%d items", len(list))
	}
}
