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

// A status field that the schema does not have is detected at discovery.
func TestTheSchemaTellsWhatThereIsRoomFor(t *testing.T) {
	schema := shape(t, `{"properties":{
		"spec":{"x-kubernetes-preserve-unknown-fields":true,"properties":{"size":{}}},
		"status":{"properties":{
			"phase":{"type":"string"},"list":{"type":"array","items":{"properties":{"a":{}}}},
			"any":{"additionalProperties":true},"texts":{"additionalProperties":{"type":"string"}},"closed":{"additionalProperties":false}
		}}}}`)
	for text, want := range map[string]bool{
		"status.phase": true, "status.phrase": false, "status": true, "status.phase.below": false,
		"status.list": true, "status.list.item": true, "spec.whatever.comes": true,
		"status.any": true, "status.any.x": true, "status.texts.x": true, "status.closed.x": false, "other": false,
	} {
		path, err := object.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := schema.has(path); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}

func TestTheSchemaTellsWhichListsHaveKeys(t *testing.T) {
	conditions := patch.List{Path: object.Path{"status", "conditions"}, Keys: []string{"type"}}
	ports := patch.List{Path: object.Path{"spec", "net", "ports"}, Keys: []string{"port", "protocol"}}
	for text, want := range map[string]patch.Lists{
		`{}`: {conditions},
		`{"properties":{"spec":{"properties":{"net":{"properties":{
			"ports":{"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port","protocol"]},
			"names":{"x-kubernetes-list-type":"set"}}}}}}}`: {ports, conditions},
		`{"properties":{"status":{"properties":{"conditions":{"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"]}}}}}`: {
			{Path: conditions.Path, Keys: []string{"name"}},
		},
	} {
		if diff := cmp.Diff(want, conventional(shape(t, text).lists(nil))); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
