package record_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// A pending handler is open. One that succeeded or failed permanently is not.
func TestOutcomesThatHaveStillToBeCalled(t *testing.T) {
	for outcome, want := range map[record.Outcome]bool{
		record.Pending: true, record.Retry: true, record.Waiting: true, record.Done: false, record.Failed: false,
	} {
		if got := outcome.Open(); got != want {
			t.Errorf("%s is open: %t, want %t", outcome, got, want)
		}
	}
}

// An essence is stored once, under its digest.
func TestAnEssenceIsKeptOnce(t *testing.T) {
	r, one := record.New("u", "v").Keep(object.Body{"n": int64(1)}, nil)
	r, again := r.Keep(object.Body{"n": 1.0}, nil) // The same value, as another decoder reads it.
	if one != again || len(r.Seen) != 1 {
		t.Errorf("digests %s and %s, kept %v", one, again, r.Seen)
	}
}

// An object that has nothing but a name was handled too: its first spec is a change from nothing.
func TestAnEmptyEssenceIsToldFromNone(t *testing.T) {
	r, digest := record.New("u", "v").Keep(object.Body{}, nil)
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := record.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Error(diff)
	}
	if kept, found := got.Essence(digest); !found || kept.Body == nil {
		t.Errorf("kept: %v, %t", kept, found)
	}
}

// G6 (docs/concepts/footguns.md). JSON from an API server has no such number, but an author's own type may.
func TestWhatCannotBeWrittenIsKeptAsDigests(t *testing.T) {
	views := map[string]string{"h": "digest"}
	r, digest := record.New("u", "v").Keep(object.Body{"share": math.NaN()}, func() map[string]string { return views })
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := record.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if kept, _ := got.Essence(digest); kept.Body != nil || !cmp.Equal(kept.Views, views) {
		t.Errorf("kept: %v", kept)
	}
}

func TestARecordThatCannotBeWrittenIsAnErrorThatNamesTheObject(t *testing.T) {
	r := record.New("uid-7", "v")
	r.Seen = []record.Essence{{Digest: "d", Body: object.Body{"share": math.Inf(1)}}}
	if text, err := r.Encode(); err == nil || !strings.Contains(err.Error(), "uid-7") {
		t.Errorf("got %q, %v", text, err)
	}
}

// Any client may have written the record: a few kilobytes must not fill the memory of the operator.
func TestAPackedEssenceIsUnpackedOnlySoFar(t *testing.T) {
	for what, plain := range map[string]string{
		"too large": `{"text":"` + strings.Repeat("a", 17<<20) + `"}`,
		"not JSON":  "all work and no play",
	} {
		var packed bytes.Buffer
		writer, err := flate.NewWriter(&packed, flate.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(plain)); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		text := `{"v":1,"uid":"u","seen":[{"digest":"d","packed":"` + base64.RawStdEncoding.EncodeToString(packed.Bytes()) + `"}]}`
		if r, err := record.Decode(text); err == nil {
			t.Errorf("%s: %d bytes were read as %v", what, len(text), r.UID)
		}
	}
}
