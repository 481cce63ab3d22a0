package record_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// Scenario 55 (docs/concepts/scenarios.md): a finished step is stored instead of the steps within it, and of no others.
func TestAStepIsRememberedInsteadOfItsParts(t *testing.T) {
	steps := record.Finish(nil, "a/one", record.Step{})
	steps = record.Finish(steps, "a/two/x", record.Step{})
	steps = record.Finish(steps, "ab", record.Step{})
	before := len(steps)
	want := map[string]record.Step{"a": {Result: []byte(`{}`)}, "ab": {}}
	if diff := cmp.Diff(want, record.Finish(steps, "a", record.Step{Result: []byte(`{}`)})); diff != "" {
		t.Error(diff)
	}
	if len(steps) != before {
		t.Error("the original was modified")
	}
}

func TestStepsOfTwoAreJoined(t *testing.T) {
	some, others := map[string]record.Step{"a/one": {}, "b": {}}, map[string]record.Step{"a": {}, "c": {}}
	want := map[string]record.Step{"a": {}, "b": {}, "c": {}}
	if diff := cmp.Diff(want, record.Join(some, others)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(others, record.Join(nil, others)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]record.Step{"c": {}}, record.Undone(others, []string{"a"})); diff != "" {
		t.Error(diff)
	}
}

func TestStepsFitIntoARecord(t *testing.T) {
	steps := map[string]record.Step{}
	for _, id := range []string{"a", "longer/id"} {
		steps[id] = record.Step{Result: []byte(`{"name":"x"}`)}
		steps[id+"-effect"] = withResult(record.Step{Intent: &record.Intent{
			Class: record.Findable, Token: "123e4567-e89b-12d3-a456-426614174000", Name: "its name", Number: 12, By: "12345678", At: begun(), Asks: true, Heard: "12345678",
		}})
	}
	with := record.New("uid", "g/v1").With("h", record.Entry{Steps: steps})
	without := record.New("uid", "g/v1").With("h", record.Entry{})
	long, err := with.Encode()
	short, failed := without.Encode()
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	if took, told := len(long)-len(short), record.StepsSize(steps); told < took-len(`,"steps":{}`) {
		t.Errorf("the steps take %d bytes, StepsSize returned %d", took, told)
	}
}
