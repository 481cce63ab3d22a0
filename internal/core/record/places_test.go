package record_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// twoRecords returns an object with records in both carriers.
func twoRecords(status, annotation string) object.Body {
	return object.Body{
		"metadata": object.Body{"uid": "u", "annotations": object.Body{object.RecordAnnotation(identity): annotation}},
		"status":   object.Body{record.RecordsField: object.Body{identity: status}},
	}
}

func recordText(version, writes int) string {
	return fmt.Sprintf(`{"v":%d,"uid":"u","apiVersion":"v1","writes":%d}`, version, writes)
}

// The record in the preferred carrier is read. One in the other carrier counts as far as releases may have put it there, and a newer one in
// the annotation beats that in the status only if a release could not remove the one in the status.
func TestTheRecordOfTheOtherCarrierCountsWhileRecordsMove(t *testing.T) {
	older, newer, tie := recordText(1, 3), recordText(1, 4), `{"v":1,"uid":"u","apiVersion":"v2","writes":3}`
	type places = record.Places
	for name, test := range map[string]struct {
		places             record.Places
		preferred          record.Carrier
		status, annotation string
		want               string
	}{
		"status, nothing known, both":            {nil, record.Status, older, newer, older},
		"status, nothing known, only other":      {nil, record.Status, "", newer, newer},
		"status, finished, both":                 {places{record.Status}, record.Status, older, newer, older},
		"status, finished, only other":           {places{record.Status}, record.Status, "", newer, ""},
		"status, begins, both":                   {places{record.Annotation}, record.Status, older, newer, older},
		"status, begins, only other":             {places{record.Annotation}, record.Status, "", newer, newer},
		"status, moving, both":                   {places{record.Status, record.Annotation}, record.Status, older, newer, older},
		"status, moving, only other":             {places{record.Status, record.Annotation}, record.Status, "", newer, newer},
		"status, moving, malformed":              {places{record.Status, record.Annotation}, record.Status, `{"v":1`, newer, newer},
		"status, moving, other malformed":        {places{record.Status, record.Annotation}, record.Status, older, `{"v":1`, older},
		"status, after a failed removal, newer":  {places{record.Annotation, record.Status}, record.Status, older, newer, newer},
		"status, after a failed removal, older":  {places{record.Annotation, record.Status}, record.Status, newer, older, newer},
		"status, after a failed removal, tie":    {places{record.Annotation, record.Status}, record.Status, older, tie, older},
		"annotation, nothing known, newer other": {nil, record.Annotation, newer, older, newer},
		"annotation, finished, newer other":      {places{record.Annotation}, record.Annotation, newer, older, newer},
		"annotation, finished, older other":      {places{record.Annotation}, record.Annotation, older, newer, newer},
		"annotation, begins, only other":         {places{record.Status}, record.Annotation, older, "", older},
		"annotation, only preferred":             {places{record.Status}, record.Annotation, "", older, older},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := record.Read(twoRecords(test.status, test.annotation), identity, test.preferred, test.places.Former(test.preferred))
			preferred := test.status
			if test.preferred == record.Annotation {
				preferred = test.annotation
			}
			if err != nil || found.Text != test.want || found.Preferred != preferred {
				t.Errorf("read %q with %q in the preferred carrier, %v; want %q", found.Text, found.Preferred, err, test.want)
			}
		})
	}
}

// Who may annotate an object can write any record into an annotation. If nothing says that a release did, no handler gets a result from it.
func TestARecordThatAnyoneCanHaveWrittenSuppliesNoResults(t *testing.T) {
	const forged = `{"v":1,"uid":"u","apiVersion":"v1","writes":99,"base":"d","deleted":true,"handlers":{
		"make":{"cause":"create","outcome":"retry","attempts":2,"since":"d","mixed":true,"steps":{
			"password":{"result":"\"guessed\""},"pay":{"result":"1","intent":{"class":"keyed","token":"t","number":1,"by":"b","at":"2026-11-21T07:00:00Z"}},
			"send":{"intent":{"class":"keyed","token":"t","number":1,"by":"b","at":"2026-11-21T07:00:00Z"}}}},
		"erase":{"cause":"delete","outcome":"done"}}}`
	found, err := record.Read(twoRecords("", forged), identity, record.Status, record.FormerProgress)
	if err != nil || !found.Partial || found.InPlace() {
		t.Fatalf("read %+v, %v; want a partial record", found, err)
	}
	want := record.Record{Version: 1, UID: "u", APIVersion: "v1", Writes: 99, Base: "d", Handlers: map[string]record.Entry{
		"make": {Cause: "create", Outcome: record.Retry, Attempts: 2}, "erase": {Cause: "delete", Outcome: record.Done},
	}}
	if diff := cmp.Diff(want, *found.Record); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}

// A record of a newer release is not overwritten, also if an older one is beside it, unless anyone can have written it.
func TestARecordOfANewerReleaseWinsInAnyCarrier(t *testing.T) {
	newer, older := recordText(record.Version+1, 1), recordText(1, 5)
	for name, test := range map[string]struct {
		status, annotation string
		when               record.Former
		wins               bool
	}{
		"in the preferred carrier":            {newer, older, record.FormerUnread, true},
		"in the other one, which may be read": {older, newer, record.FormerNewer, true},
		"in the other one, alone":             {"", newer, record.FormerAlone, true},
		"in the other one, which is not read": {older, newer, record.FormerAlone, false},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := record.Read(twoRecords(test.status, test.annotation), identity, record.Status, test.when)
			if errors.Is(err, record.ErrNewer) != test.wins || (found.Record == nil) != test.wins {
				t.Errorf("read %+v, %v", found.Record, err)
			}
		})
	}
}

// Releases move records back and forth, and some cannot remove the former ones. What is stored says what later releases may find.
func TestPlacesFollowTheReleasesOfAnOperator(t *testing.T) {
	for name, test := range map[string]struct {
		before string
		to     record.Carrier
		hidden bool
		after  string
		former record.Former
	}{
		"a first release with a status":              {"", record.Status, false, "", record.FormerProgress},
		"a first release with annotations":           {"", record.Annotation, false, "annotation", record.FormerNewer},
		"a first release that does not see a status": {"", record.Annotation, true, "annotation,status", record.FormerNewer},
		"the same release":                           {"status", record.Status, false, "status", record.FormerUnread},
		"the same release, not finished":             {"status,annotation", record.Status, false, "status,annotation", record.FormerAlone},
		"forward":                                    {"annotation", record.Status, false, "status,annotation", record.FormerAlone},
		"back, where the schema has no room":         {"status,annotation", record.Annotation, false, "annotation", record.FormerNewer},
		"back, where the type hides the status":      {"status", record.Annotation, true, "annotation,status", record.FormerNewer},
		"forward after records that were hidden":     {"annotation,status", record.Status, false, "status,annotation,status", record.FormerNewer},
		"back in the middle of that":                 {"status,annotation,status", record.Annotation, true, "annotation,status,annotation", record.FormerNewer},
		"forward again":                              {"annotation,status,annotation", record.Status, false, "status,annotation,status", record.FormerNewer},
	} {
		t.Run(name, func(t *testing.T) {
			var before record.Places
			if test.before != "" {
				var err error
				if before, err = record.ParsePlaces(test.before); err != nil || before.String() != test.before {
					t.Fatalf("parsed %q, %v", before, err)
				}
			}
			if after := before.Moved(test.to, test.hidden).String(); after != test.after {
				t.Errorf("after: %q, want %q", after, test.after)
			}
			if former := before.Former(test.to); former != test.former {
				t.Errorf("former: %d, want %d", former, test.former)
			}
		})
	}
}

func TestInvalidPlacesAreRefused(t *testing.T) {
	for _, text := range []string{"", "status,", "Status", "annotation apart", "status,status", "status,annotation,status,annotation"} {
		if places, err := record.ParsePlaces(text); err == nil {
			t.Errorf("%q gives %v, want an error", text, places)
		}
	}
}
