package record_test

import (
	"errors"
	"fmt"
	"testing"

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

// Of two records of an object, the one that was stored more often is read, in whichever carrier it is. The preferred carrier wins a tie.
func TestTheNewerOfTwoRecordsIsRead(t *testing.T) {
	for name, test := range map[string]struct{ status, annotation, want string }{
		"the preferred one is newer": {recordText(1, 3), recordText(1, 2), recordText(1, 3)},
		"the other one is newer":     {recordText(1, 3), recordText(1, 4), recordText(1, 4)},
		"both are equally old":       {recordText(1, 3), `{"v":1,"uid":"u","apiVersion":"v2","writes":3}`, recordText(1, 3)},
		"the other one is malformed": {recordText(1, 3), `{"v":1`, recordText(1, 3)},
		"only the other one":         {"", recordText(1, 1), recordText(1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := record.Read(twoRecords(test.status, test.annotation), identity, record.Status)
			if err != nil || found.Text != test.want || found.Preferred != test.status {
				t.Errorf("read %q with %q in the preferred carrier, %v; want %q", found.Text, found.Preferred, err, test.want)
			}
		})
	}
}

// A record of a newer release is not overwritten, also if an older one is beside it.
func TestARecordOfANewerReleaseWinsInAnyCarrier(t *testing.T) {
	newer := recordText(record.Version+1, 1)
	for name, both := range map[string][2]string{"in the preferred carrier": {newer, recordText(1, 5)}, "in the other one": {recordText(1, 5), newer}} {
		t.Run(name, func(t *testing.T) {
			found, err := record.Read(twoRecords(both[0], both[1]), identity, record.Status)
			if !errors.Is(err, record.ErrNewer) || found.Record != nil {
				t.Errorf("read %+v, %v; want no record and ErrNewer", found.Record, err)
			}
		})
	}
}
