package record_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"math"
	"runtime"
	"slices"
	"strconv"
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

// packed returns an essence with a digest as it is stored.
func packed(t *testing.T, digest, plain string) string {
	t.Helper()
	var text bytes.Buffer
	writer, err := flate.NewWriter(&text, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write([]byte(plain)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return `{"digest":"` + digest + `","packed":"` + base64.RawStdEncoding.EncodeToString(text.Bytes()) + `"}`
}

func seen(essences ...string) string {
	return `{"v":1,"uid":"uid","seen":[` + strings.Join(essences, ",") + `]}`
}

func TestAPackedEssenceThatIsNotJSONIsAnError(t *testing.T) {
	if _, err := record.Decode(seen(packed(t, "d", "all work and no play"))); err == nil {
		t.Error("it was read")
	}
}

// Any client may have written the record: a few kilobytes must not fill the memory of the operator.
func TestAHostileRecordTakesLittleMemory(t *testing.T) {
	large := packed(t, "d", `{"text":"`+strings.Repeat("a", 16<<20)+`"}`)
	maps := packed(t, "d", `{"list":[`+strings.Repeat(`{"":{"":{"":0}}},`, 1<<20)+`0]}`)
	deep := packed(t, "d", strings.Repeat(`{"":`, 9000)+"0"+strings.Repeat("}", 9000))
	nearlyFitting := packed(t, "d", `{"list":[`+strings.Repeat(`{"":0},`, 250_000)+`0]}`)
	fewMaps := packed(t, "d", `{"list":[`+strings.Repeat(`{"":0},`, 10000)+`0]}`)
	for name, text := range map[string]string{
		"large texts":    seen(repeated(large, 12)...),
		"many maps":      seen(repeated(maps, 12)...),
		"maps in maps":   seen(repeated(deep, 200)...),
		"near the limit": seen(repeated(nearlyFitting, 60)...),
		"many essences":  seen(repeated(fewMaps, 100)...),
		"empty essences": seen(repeated(`{}`, 300_000)...),
		"handlers":       `{"v":1,"uid":"uid","handlers":{` + strings.Join(numbered(100_000, `{}`), ",") + `}}`,
		"steps":          `{"v":1,"uid":"uid","handlers":{"h":{"steps":{` + strings.Join(numbered(100_000, `{"intent":{}}`), ",") + `}}}}`,
		"views":          seen(`{"digest":"d","views":{` + strings.Join(numbered(100_000, `""`), ",") + `}}`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = record.Read(object.Body{"metadata": object.Body{"uid": "uid", "annotations": object.Body{"x/record": text}}}, "x", record.Annotation, record.FormerNewer)
		runtime.ReadMemStats(&after)
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > mostMemory {
			t.Errorf("%s: a record of %d KiB takes %d MiB of memory, want at most %d", name, len(text)>>10, allocated, mostMemory)
		}
		runtime.ReadMemStats(&before)
		_, _ = record.Read(object.Body{"metadata": object.Body{"uid": "other", "annotations": object.Body{"x/record": text}}}, "x", record.Annotation, record.FormerNewer)
		runtime.ReadMemStats(&after)
		if allocated := (after.TotalAlloc - before.TotalAlloc); allocated > uint64(4*len(text)) {
			t.Errorf("%s: a record of %d KiB of another object takes %d KiB of memory", name, len(text)>>10, allocated>>10)
		}
	}
}

func repeated(text string, times int) []string {
	return slices.Repeat([]string{text}, times)
}

func numbered(count int, value string) []string {
	fields := make([]string, count)
	for i := range fields {
		fields[i] = `"` + strconv.Itoa(i) + `":` + value
	}
	return fields
}

// An earlier release has stored what does not fit any more: the newest essences are read, and of the others the digests.
func TestARecordWithTooManyEssencesIsStillUsable(t *testing.T) {
	var essences []string
	for i := range 20 {
		essences = append(essences, packed(t, "d"+strconv.Itoa(i), `{"text":"`+strings.Repeat("a", 1<<20)+`"}`))
	}
	first, err := record.Decode(seen(essences...))
	if err != nil {
		t.Fatal(err)
	}
	text, err := first.Encode()
	if err != nil {
		t.Fatal(err)
	}
	second, err := record.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []record.Record{first, second} {
		if read := countRead(t, r); read < 10 || read > 15 || !r.Seen[0].Unread() || r.Seen[19].Unread() {
			t.Errorf("read %d of 20 essences of 1 MiB", read)
		}
	}
}

// countRead counts the essences that were read. Each has its digest.
func countRead(t *testing.T, r record.Record) (read int) {
	t.Helper()
	for i, kept := range r.Seen {
		if kept.Digest != "d"+strconv.Itoa(i) {
			t.Fatalf("essence %d has digest %s", i, kept.Digest)
		}
		if !kept.Unread() {
			read++
		}
	}
	return read
}

// What is stored can be read again: of what takes too much memory, digests are stored.
func TestAnEssenceOfManyMapsIsKeptAsDigests(t *testing.T) {
	list := make([]any, 50_000)
	for i := range list {
		list[i] = object.Body{}
	}
	views := map[string]string{"h": "digest"}
	r, digest := record.New("u", "v").Keep(object.Body{"list": list}, func() map[string]string { return views })
	if kept, _ := r.Essence(digest); !cmp.Equal(kept.Views, views) {
		t.Errorf("kept %v", kept)
	}
}
