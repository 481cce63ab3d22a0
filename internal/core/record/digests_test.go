package record_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// Of Secrets only digests are stored. A handler that an upgrade adds gets its own digest, and the original record does not change.
func TestDigestsAreKeptOnceAndGrowByHandlers(t *testing.T) {
	first := record.New("1", "v1").KeepDigests("d", map[string]string{"make": "m"}).KeepDigests("d", map[string]string{"other": "o"})
	grown := first.WithView("d", "resize", "r").WithView("unknown", "resize", "r")
	want := []record.Essence{{Digest: "d", Views: map[string]string{"make": "m", "resize": "r"}}}
	if diff := cmp.Diff(want, grown.Seen); diff != "" {
		t.Errorf("the new record: %s", diff)
	}
	want[0].Views = map[string]string{"make": "m"}
	if diff := cmp.Diff(want, first.Seen); diff != "" {
		t.Errorf("the original record: %s", diff)
	}
	bare := record.New("1", "v1").KeepDigests("d", nil).WithView("d", "resize", "r")
	want[0].Views = map[string]string{"resize": "r"}
	if diff := cmp.Diff(want, bare.Seen); diff != "" {
		t.Errorf("a record without views: %s", diff)
	}
}

// A copy without records has no empty fields in their place either, since these would count as changes by the handler.
func TestCuttingRecordsLeavesNoEmptyRooms(t *testing.T) {
	text := `{"v":1,"uid":"1"}`
	cut := record.Cut(object.Body{
		"metadata": object.Body{"name": "one", "annotations": object.Body{"a.example.com/record": text}},
		"status":   object.Body{"records": object.Body{"a.example.com": text}},
	})
	if diff := cmp.Diff(object.Body{"metadata": object.Body{"name": "one"}}, cut); diff != "" {
		t.Error(diff)
	}
	bare := object.Body{"metadata": object.Body{"name": "one"}, "status": object.Body{}}
	if diff := cmp.Diff(object.Body{"metadata": object.Body{"name": "one"}}, record.Cut(bare)); diff != "" {
		t.Error(diff)
	}
}

// A kind may have its own field status.records: anything except a map of strings does not hold records.
func TestAFieldOfTheSameNameIsLeftAlone(t *testing.T) {
	own := object.Body{"status": object.Body{"records": object.Body{"a.example.com": object.Body{"not": "a record"}}}}
	if diff := cmp.Diff(own, record.Cut(own)); diff != "" {
		t.Error(diff)
	}
}
