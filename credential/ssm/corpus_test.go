package ssm_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/credential"
)

// stored is a parameter in testdata/parameters.json.
type stored struct {
	Name  string
	Type  types.ParameterType
	Value string
}

// corpus are records with each kind of overlap.
func corpus() []credential.Record {
	var records []credential.Record
	for i, overlap := range []time.Duration{0, credential.NoOverlap, 36 * time.Hour} {
		made := record(i + 1)
		made.Password = credential.NewPassword(fmt.Sprint("password-of-a-test-", i+1))
		made.Request = "{{ssm:/lab/other}}" // SSM would take it for a reference.
		made.Overlap = overlap
		records = append(records, made)
	}
	return records
}

// Parameters outlive every process that writes them. A change of their form must be intended: processes of another release could not read them.
func TestTheFormOfParametersStays(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/parameters.json")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []stored
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	for _, record := range corpus() {
		w.none(w.store.Create(t.Context(), name, owner(), record))
	}
	w.none(w.store.Publish(t.Context(), name, owner(), corpus()[1]))
	reader := newWorld(t)
	for _, one := range want {
		found := w.get(one.Name)
		got = append(got, stored{*found.Name, found.Type, *found.Value})
		reader.plant(one.Name, one.Type, one.Value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	found, err := reader.read()
	same := cmp.Comparer(func(a, b credential.Password) bool { return a == b })
	if diff := cmp.Diff(corpus(), found.Records, same); diff != "" || err != nil || found.Published != 2 {
		t.Errorf("it publishes %d, %v (-want +got):\n%s", found.Published, err, diff)
	}
}
