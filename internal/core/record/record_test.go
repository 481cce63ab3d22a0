package record_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

const identity = "op.example.com"

func sample() record.Record {
	r := record.New("uid-1", "g/v1")
	r, r.Base = r.Keep(object.Body{"spec": object.Body{"size": int64(1), "text": "<a> & ü \u2028", "share": 0.5}}, nil)
	at := time.Date(2026, 11, 21, 7, 0, 0, 123_000_000, time.UTC)
	return r.With("h", record.Entry{
		Cause: "update", Outcome: record.Retry, Seen: r.Base, Tried: "0123", Attempts: 2, Started: at,
		Next: at.Add(time.Minute), Asked: true, Message: "no luck",
	})
}

func TestWhatIsEncodedIsDecoded(t *testing.T) {
	text, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := record.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Error(diff)
	}
	again, err := got.Encode()
	if err != nil || again != text {
		t.Errorf("encoded again the text differs, which would cause a write at every restart:\n%s\n%s (%v)", text, again, err)
	}
}

func TestARecordOfANewerReleaseIsRefused(t *testing.T) {
	if _, err := record.Decode(`{"v":2,"uid":"u"}`); !errors.Is(err, record.ErrNewer) {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{"", "x", "{}", `{"v":1}`, `{"uid":"u"}`, "[]", "null", `{"v":"1","uid":"u"}`} {
		if _, err := record.Decode(text); err == nil || errors.Is(err, record.ErrNewer) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestMessagesAreCapped(t *testing.T) {
	if short := "short"; record.Shorten(short) != short {
		t.Error("a short message was changed")
	}
	for _, long := range []string{strings.Repeat("a", 300), strings.Repeat("ü", 300), "a" + strings.Repeat("ü", 300)} {
		got := record.Shorten(long)
		if len(got) > record.MessageLimit || !strings.HasSuffix(got, "…") || strings.Contains(got, "\uFFFD") || !json.Valid([]byte(`"`+got+`"`)) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
	}
}

func withRecord(uid string, carrier record.Carrier, text string) object.Body {
	body := object.Body{"metadata": object.Body{"uid": uid}}
	return object.With(body, carrier.Path(identity), text)
}

func TestReadingFindsTheRecordInEitherCarrier(t *testing.T) {
	text, _ := sample().Encode()
	for _, lies := range []record.Carrier{record.Status, record.Annotation} {
		for _, preferred := range []record.Carrier{record.Status, record.Annotation} {
			found, err := record.Read(withRecord("uid-1", lies, text), identity, preferred, record.FormerNewer)
			if err != nil || found.Record == nil || found.Text != text {
				t.Fatalf("in %s, preferred %s: %v, %v", lies, preferred, found, err)
			}
			want := ""
			if lies == preferred {
				want = text
			}
			if found.Preferred != want || found.InPlace() != (lies == preferred) {
				t.Errorf("in %s, preferred %s: a conditional write would test %q, in place: %t", lies, preferred, found.Preferred, found.InPlace())
			}
		}
	}
}

// A record with another object's uid comes from a copied or restored manifest.
func TestARecordOfAnotherObjectIsNotUsed(t *testing.T) {
	text, _ := sample().Encode()
	found, err := record.Read(withRecord("uid-2", record.Annotation, text), identity, record.Annotation, record.FormerNewer)
	if found.Record != nil || err != nil || found.Preferred != text || found.InPlace() {
		t.Errorf("got %v, %v", found, err)
	}
	if record.Usable(text, "uid-2") || !record.Usable(text, "uid-1") || record.Usable("", "") {
		t.Error("a record is usable for another object")
	}
}

func TestUnreadableRecordsAreReported(t *testing.T) {
	if found, err := record.Read(withRecord("u", record.Status, "junk"), identity, record.Status, record.FormerNewer); found.Record != nil || err == nil {
		t.Errorf("got %v, %v", found, err)
	}
	if found, err := record.Read(object.Body{}, identity, record.Status, record.FormerNewer); found != (record.Stored{}) || err != nil {
		t.Errorf("an empty object: %v, %v", found, err)
	}
}

func TestHandlersDoNotSeeRecords(t *testing.T) {
	body := withRecord("u", record.Status, "x")
	for _, operator := range []string{identity, "other.example.com"} {
		body = object.With(body, record.Annotation.Path(operator), `{"v":1,"uid":"u"}`)
	}
	want := object.Body{"metadata": object.Body{"uid": "u"}}
	if diff := cmp.Diff(want, record.Cut(body)); diff != "" {
		t.Error(diff)
	}
	body = object.With(body, object.Path{"status", "phase"}, "p")
	want["status"] = object.Body{"phase": "p"}
	if diff := cmp.Diff(want, record.Cut(body)); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyEssencesInUseAreKept(t *testing.T) {
	r := sample()
	r, used := r.Keep(object.Body{"n": int64(2)}, nil)
	r, _ = r.Keep(object.Body{"n": int64(3)}, nil)
	r = r.With("other", record.Entry{Outcome: record.Done, Seen: used}).Pruned()
	if len(r.Seen) != 2 || r.Age(used) != 1 || r.Age("none") != -1 {
		t.Errorf("kept: %v", r.Seen)
	}
	r = r.Without("h").Without("other").Without("none").Pruned()
	if len(r.Seen) != 1 || r.Handlers != nil {
		t.Errorf("a closed record must hold one essence and no handlers: %+v", r)
	}
}

func TestRecordsAreValues(t *testing.T) {
	original := sample()
	_ = original.With("h", record.Entry{}).Without("h")
	_, _ = original.Keep(object.Body{"more": true}, nil)
	if diff := cmp.Diff(sample(), original); diff != "" {
		t.Errorf("a copy changed its original: %s", diff)
	}
}

// G6 (docs/concepts/footguns.md): a large essence is packed. Of one that is still too large only digests are stored.
func TestLargeEssences(t *testing.T) {
	packable := object.Body{"text": strings.Repeat("all work and no play ", 10_000)}
	noise := make([]byte, 0, 2*record.EssenceLimit)
	for state := uint32(1); len(noise) < cap(noise); state = state*1664525 + 1013904223 {
		noise = append(noise, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-"[state>>26])
	}
	views := map[string]string{"h": "digest"}
	r := record.New("u", "v")
	r, packed := r.Keep(packable, nil)
	r, tooLarge := r.Keep(object.Body{"text": string(noise)}, func() map[string]string { return views })
	r = r.With("one", record.Entry{Seen: packed}).With("two", record.Entry{Seen: tooLarge})
	text, err := r.Encode()
	if err != nil || len(text) > 4<<10 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	got, err := record.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Error(diff)
	}
	if kept, _ := got.Essence(tooLarge); kept.Body != nil || !cmp.Equal(kept.Views, views) {
		t.Errorf("kept of the largest: %v", kept)
	}
	for _, bad := range []string{`"packed":"!"`, `"packed":"AAAA"`, `"essence":1`} {
		if _, err := record.Decode(`{"v":1,"uid":"u","seen":[{"digest":"d",` + bad + `}]}`); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// FuzzDecode checks that no text panics, and that what can be decoded survives encoding and decoding.
func FuzzDecode(f *testing.F) {
	text, _ := sample().Encode()
	f.Add(text)
	f.Add(`{"v":1,"uid":"u","seen":[{"digest":"d","essence":{"a":1e300}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		first, err := record.Decode(text)
		if err != nil {
			return
		}
		encoded, err := first.Encode()
		if err != nil {
			return // A number or a time that JSON cannot hold.
		}
		second, err := record.Decode(encoded)
		if err != nil {
			t.Fatalf("%q encodes to %q: %v", text, encoded, err)
		}
		if again, err := second.Encode(); err != nil || again != encoded {
			t.Errorf("%q, then %q", encoded, again)
		}
	})
}

// A Deployment copies its annotations, including its record, to its ReplicaSets. Therefore theirs has another name.
func TestARecordApartIsNotTheOwners(t *testing.T) {
	text := func(uid string) string {
		t.Helper()
		encoded, err := record.New(uid, "apps/v1").Encode()
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	own := object.With(object.Body{"metadata": object.Body{"uid": "own"}}, record.Annotation.Path(identity), text("owner"))
	if found, _ := record.Read(own, identity, record.SeparateAnnotation, record.FormerNewer); found.Record != nil {
		t.Errorf("the owner's record is used: %v", found)
	}
	own = object.With(own, record.SeparateAnnotation.Path(identity), text("own"))
	if found, err := record.Read(own, identity, record.SeparateAnnotation, record.FormerNewer); found.Record == nil || err != nil || found.Preferred != text("own") {
		t.Errorf("read %v, %v", found, err)
	}
	if cut := record.Cut(own); len(object.Map(cut, "metadata", "annotations")) > 0 {
		t.Errorf("handlers see %v", cut)
	}
	if _, has := record.SeparateAnnotation.Other(); has {
		t.Error("the operator writes to the owner's record")
	}
}
