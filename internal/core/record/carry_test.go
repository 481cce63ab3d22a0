package record_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

const (
	ours   = `{"v":1,"uid":"u","base":"new"}`
	old    = `{"v":1,"uid":"u","base":"old"}`
	theirs = `{"v":1,"uid":"u","base":"theirs"}`
)

// recorded is an object with records of two operators in both carriers, and with other content beside each.
func recorded(text string) object.Body {
	body := object.Body{"metadata": object.Body{"uid": "u", "annotations": object.Body{"a": "1"}}, "status": object.Body{"phase": "p"}}
	for _, carrier := range []record.Carrier{record.Status, record.Annotation} {
		body = object.With(body, carrier.Path(identity), text)
		body = object.With(body, carrier.Path("other.example.com"), theirs)
	}
	return body
}

// A full update of the handled object carries the current records over.
func TestAFullUpdateKeepsTheRecordsThatAreThere(t *testing.T) {
	for name, copied := range map[string]object.Body{
		"a copy without": record.Cut(recorded(ours)), "a copy with old ones": recorded(old), "the object itself": recorded(ours),
	} {
		if diff := cmp.Diff(recorded(ours), record.Carry(recorded(ours), copied)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	bare := object.Body{"metadata": object.Body{"annotations": object.Body{"a": "1"}}, "status": object.Body{"phase": "p"}}
	if diff := cmp.Diff(bare, record.Carry(object.Body{}, object.With(recorded(old), object.Path{"metadata"}, bare["metadata"]))); diff != "" {
		t.Errorf("removed records come back: %s", diff)
	}
	if diff := cmp.Diff(object.Body{"status": object.Body{}}, record.Carry(object.Body{}, object.Body{"status": object.Body{}})); diff != "" {
		t.Errorf("an empty status: %s", diff)
	}
}

func TestAFieldThatIsOnlyCalledRecordsIsTheUsers(t *testing.T) {
	zone := func(names ...any) object.Body { return object.Body{"status": object.Body{"records": names}} }
	if diff := cmp.Diff(zone("b"), record.Carry(zone("a"), zone("b"))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(zone("b"), record.WithoutRecordChanges(zone("b"), zone("a"))); diff != "" {
		t.Error(diff)
	}
}

func TestMergePatchesLeaveRecordsAlone(t *testing.T) {
	annotations := func(value any) object.Body { return object.Body{"metadata": object.Body{"annotations": value}} }
	status := func(value any) object.Body { return object.Body{"status": value} }
	mine := object.RecordAnnotation(identity)
	for name, test := range map[string]struct{ merge, want object.Body }{
		"removes it":         {annotations(object.Body{mine: nil, "a": "2"}), annotations(object.Body{"a": "2"})},
		"reverts it":         {annotations(object.Body{mine: old}), annotations(object.Body{})},
		"takes another's":    {annotations(object.Body{"other.example.com/record": nil}), annotations(object.Body{})},
		"all annotations":    {annotations(nil), annotations(object.Body{"a": nil})},
		"of the status":      {status(object.Body{"records": nil, "phase": "q"}), status(object.Body{"phase": "q"})},
		"one of the status":  {status(object.Body{"records": object.Body{identity: old}}), status(object.Body{})},
		"all of the status":  {status(nil), status(object.Body{"phase": nil})},
		"another annotation": {annotations(object.Body{"x/record": "Abbey Road"}), annotations(object.Body{"x/record": "Abbey Road"})},
	} {
		if !record.MayChangeRecords(test.merge) {
			t.Errorf("%s: not found", name)
		}
		if diff := cmp.Diff(test.want, record.WithoutRecordChanges(test.merge, recorded(ours))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, harmless := range []object.Body{{}, {"spec": nil}, annotations(object.Body{"a": "2"}), status(object.Body{"phase": nil})} {
		if record.MayChangeRecords(harmless) {
			t.Errorf("harmless patch %v counts as a threat", harmless)
		}
	}
}
