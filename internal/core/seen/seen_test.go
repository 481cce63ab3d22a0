package seen_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
	"github.com/einmal-operators/einmal/internal/core/seen"
)

// recorded is a record after some writes, and its text.
func recorded(t *testing.T, writes int) (record.Record, string) {
	t.Helper()
	r := record.New("u", "v1")
	r.Writes = writes
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return r, text
}

// found is what record.Read finds of a record in the preferred carrier.
func found(r record.Record, text string) record.Stored {
	return record.Stored{Record: &r, Text: text, From: record.Status, Preferred: text}
}

// A record in the object counts, unless the process remembers a newer one.
func TestTheNewestRecordCounts(t *testing.T) {
	older, olderText := recorded(t, 1)
	newer, newerText := recorded(t, 2)
	former := found(older, olderText)
	former.Preferred = ""
	partial := found(newer, newerText)
	partial.Partial = true
	for _, test := range []struct {
		title               string
		found               record.Stored
		remembered          string
		writes, before      int
		inPlace, overruling bool
	}{
		{title: "that of the object is the only one", found: found(older, olderText), writes: 1, before: 1, inPlace: true},
		{title: "the process remembers the same", found: found(older, olderText), remembered: olderText, writes: 1, before: 1, inPlace: true},
		{title: "the process remembers an older one", found: found(newer, newerText), remembered: olderText, writes: 2, before: 2, inPlace: true},
		{title: "the process remembers a newer one", found: found(older, olderText), remembered: newerText, writes: 2, before: 1, overruling: true},
		{title: "the object has none", found: record.Stored{Preferred: "x"}, remembered: newerText, writes: 2, before: 2, overruling: true},
		{title: "only the progress is read", found: partial, remembered: olderText, writes: 1, before: 2, overruling: true},
		{title: "it is in the other carrier", found: former, writes: 1, before: 1},
	} {
		t.Run(test.title, func(t *testing.T) {
			chosen, err := seen.Choose(test.found, test.remembered)
			if err != nil {
				t.Fatal(err)
			}
			if chosen.Value().Writes != test.writes || chosen.Before().Writes != test.before {
				t.Errorf("the record after %d writes counts, and the one before after %d", chosen.Value().Writes, chosen.Before().Writes)
			}
			if chosen.InPlace() != test.inPlace || chosen.Remembered() != test.overruling || chosen.Stored() != test.found.Preferred {
				t.Errorf("in place: %t, remembered: %t, stored: %q", chosen.InPlace(), chosen.Remembered(), chosen.Stored())
			}
		})
	}
}

// An object without a record, in a process that remembers none, has none.
func TestWithoutARecordNoneCounts(t *testing.T) {
	chosen, err := seen.Choose(record.Stored{Preferred: "of another object"}, "")
	if err != nil || chosen.Value() != nil || chosen.Before() != nil || chosen.InPlace() || chosen.Stored() != "of another object" {
		t.Errorf("the record is %+v, %v", chosen, err)
	}
	if got := chosen.OfLiving(); got.Value() != nil {
		t.Errorf("a correction makes the record %+v", got)
	}
	if _, err := seen.Choose(record.Stored{}, `{"v":1000,"uid":"u"}`); !errors.Is(err, record.ErrNewer) {
		t.Errorf("a text that cannot be decoded: %v, want %v", err, record.ErrNewer)
	}
}

// Each change of a record gives another one, which is written again. The first stays as it is.
func TestAChangedRecordIsWrittenAgain(t *testing.T) {
	deleted, text := recorded(t, 1)
	deleted.Deleted = true
	first, err := seen.Choose(found(deleted, text), "")
	if err != nil {
		t.Fatal(err)
	}
	before := first
	want := func(change func(*record.Record)) record.Record {
		next := deleted
		change(&next)
		return next
	}
	for title, test := range map[string]struct {
		got  seen.Record
		want record.Record
	}{
		"of a living object":             {first.OfLiving(), want(func(r *record.Record) { r.Deleted, r.Writes = false, 2 })},
		"newer":                          {first.Newer(), want(func(r *record.Record) { r.Writes = 2 })},
		"doubted, and its creation open": {first.Doubted(true), want(func(r *record.Record) { r.Doubted = true })},
		"doubted":                        {first.Doubted(false), deleted},
	} {
		if diff := cmp.Diff(test.want, *test.got.Value()); diff != "" || test.got.InPlace() {
			t.Errorf("%s: in place is %t, and the record (-want +got):\n%s", title, test.got.InPlace(), diff)
		}
	}
	if !first.InPlace() || first != before || first.Value().Writes != 1 {
		t.Errorf("the first record has become %+v", first)
	}
	written := first.Newer().Written("the text")
	if !written.InPlace() || written.Stored() != "the text" {
		t.Errorf("after it was written: in place is %t, stored %q", written.InPlace(), written.Stored())
	}
	if left := written.NotWritten(); left.InPlace() || left.Stored() != "" {
		t.Errorf("after none was written: in place is %t, stored %q", left.InPlace(), left.Stored())
	}
	if saved := written.Saved(record.Record{Writes: 7}); saved.Value().Writes != 7 || !saved.InPlace() {
		t.Errorf("after another one was saved: %+v", saved)
	}
}

// After a write, patches are made for the answer, and handlers go on with the object that they were given.
func TestAnObjectAfterAWrite(t *testing.T) {
	body := func(version string) object.Body {
		return object.Body{"metadata": object.Body{"resourceVersion": version, "finalizers": []any{"f"}, "labels": nil}}
	}
	cached := seen.Cached(body("1"))
	if _, has := cached.Raw()["metadata"].(object.Body)["labels"]; has || cached.IsLive() {
		t.Errorf("what the API server has is taken for %v, live: %t", cached.Raw(), cached.IsLive())
	}
	answered := cached.Answered(body("2"))
	if !answered.IsLive() || answered.Version() != "2" || seen.Version(answered.Body()) != "1" {
		t.Errorf("after the write: live is %t, raw %v, body %v", answered.IsLive(), answered.Raw(), answered.Body())
	}
	if cached.Version() != "1" || cached.IsLive() {
		t.Errorf("the object before has become %v", cached.Raw())
	}
	if live := seen.Live(body("3"), body("3")); !live.IsLive() || !live.HasFinalizer("f") || live.HasFinalizer("g") || live.Deleting() {
		t.Errorf("the live object is %+v", live)
	}
}
