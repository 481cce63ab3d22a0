package kube

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

func shape(t *testing.T, text string) property {
	t.Helper()
	var found property
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTheSchemaTellsWhichListsHaveKeys(t *testing.T) {
	conditions := patch.List{Path: object.Path{"status", "conditions"}, Keys: []string{"type"}}
	ports := patch.List{Path: object.Path{"spec", "net", "ports"}, Keys: []string{"port", "protocol"}}
	for text, want := range map[string]patch.Lists{
		`{}`: {conditions},
		`{"properties":{"spec":{"properties":{"net":{"properties":{
			"ports":{"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"]},
			"names":{"x-kubernetes-list-type":"set"}}}}}}}`: {ports, conditions},
		`{"properties":{"spec":{"properties":{"jobs":{"items":{"properties":{
			"env":{"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"]}}}}}}}}`: {
			{Path: object.Path{"spec", "jobs", patch.Items, "env"}, Keys: []string{"name"}}, conditions,
		},
		`{"properties":{"status":{"properties":{"conditions":{"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"]}}}}}`: {
			{Path: conditions.Path, Keys: []string{"name"}},
		},
	} {
		if diff := cmp.Diff(want, conventional(shape(t, text).lists(nil))); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// Only a map of strings can hold records: a field of the same name with another type belongs to the kind.
func TestTheSchemaTellsWhetherTheStatusHoldsRecords(t *testing.T) {
	status := func(text string) string { return `{"properties":{"status":{` + text + `}}}` }
	for text, want := range map[string]bool{
		`{}`: false,
		`{"x-kubernetes-preserve-unknown-fields":true}`: true,
		status(``): false,
		status(`"x-kubernetes-preserve-unknown-fields":true`):                                            true,
		status(`"properties":{"records":{"additionalProperties":{"type":"string"}}}`):                    true,
		status(`"properties":{"records":{"additionalProperties":{"type":"object"}}}`):                    false,
		status(`"properties":{"records":{"type":"array","items":{"type":"string"}}}`):                    false,
		status(`"properties":{"records":{"type":"integer"}}`):                                            false,
		status(`"x-kubernetes-preserve-unknown-fields":true,"properties":{"records":{"type":"array"}}`):  false,
		status(`"properties":{"records":{"type":"object","properties":{"total":{"type":"integer"}}}}`):   false,
		status(`"properties":{"records":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`): false,
	} {
		if got := shape(t, text).allowsRecords(); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestTheSchemaTellsWhichConditionsTheStatusAccepts(t *testing.T) {
	of := func(conditions string) string {
		return `{"properties":{"status":{"properties":{"conditions":` + conditions + `}}}}`
	}
	for text, want := range map[string]Conditions{
		`{}`: {},
		`{"x-kubernetes-preserve-unknown-fields":true}`:                                                                       {},
		of(`{"x-kubernetes-preserve-unknown-fields":true}`):                                                                   {Listed: true},
		of(`{"type":"array","items":{"type":"object","required":["type","status"],"properties":{"type":{"type":"string"}}}}`): {Listed: true},
		of(`{"type":"array","items":{"type":"object","properties":{"type":{"type":"string","enum":["Ready"]}}}}`):             {Listed: true, Types: []string{"Ready"}},
		of(`{"type":"array","items":{"type":"object","required":["type","severity"]}}`):                                       {},
		of(`{"type":"array","items":{"type":"string"}}`):                                                                      {},
		of(`{"type":"object","additionalProperties":{"type":"string"}}`):                                                      {},
	} {
		got := shape(t, text).conditions()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		if accepts := want.Listed && want.Types == nil; got.Accept("StateLost") != accepts {
			t.Errorf("%s: accepts StateLost: %v", text, !accepts)
		}
	}
}
