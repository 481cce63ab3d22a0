package record_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// The corpus holds records written by each release, which every later release must read. Package handler tests what it decides from
// them.
func TestRecordsOfEachReleaseAreReadAndWrittenWithoutLoss(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(filepath.ToSlash(file), "testdata/"), func(t *testing.T) {
			text := corpusRecord(t, file)
			nothingIsLost(t, text)
			for _, carrier := range []record.Carrier{record.Status, record.Annotation} {
				isReadFrom(t, carrier, text)
			}
		})
	}
}

func nothingIsLost(t *testing.T, text string) {
	t.Helper()
	first := decoded(t, text)
	again, err := first.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, `"packed"`) && again != text { // The compression depends on the library.
		t.Errorf("encoded again the text differs:\n%s\n%s", text, again)
	}
	if diff := cmp.Diff(first, decoded(t, again)); diff != "" {
		t.Errorf("the record differs: %s", diff)
	}
}

func isReadFrom(t *testing.T, carrier record.Carrier, text string) {
	t.Helper()
	want := decoded(t, text)
	found, err := record.Read(withRecord(want.UID, carrier, text), identity, carrier, record.FormerNewer)
	if err != nil || found.Record == nil || found.Preferred != text {
		t.Fatalf("in the %s: %v, %v", carrier, found, err)
	}
	if diff := cmp.Diff(want, *found.Record); diff != "" {
		t.Errorf("in the %s: %s", carrier, diff)
	}
}

func decoded(t *testing.T, text string) record.Record {
	t.Helper()
	r, err := record.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func corpusRecord(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Record string `json:"record"`
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return kept.Record
}
