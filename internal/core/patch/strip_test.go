package patch_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

const stripped = `{"metadata":{"uid":"u","annotations":{"a":"1","b.example.com/record":"{\"v\":1}"},"finalizers":["b.example.com/finalizer"]},
	"status":{"phase":"p","records":{"b.example.com":"r"},"conditions":[{"type":"StateLost","message":"see the annotation b.example.com/recreate"},{"type":"Ready"}]}}`

// Strip removes what one operator leaves in an object, and no marks of other operators.
func TestOneOperatorsMarksAreTakenOut(t *testing.T) {
	marked := `{"metadata":{"uid":"u","annotations":{"a":"1","b.example.com/record":"{\"v\":1}","a.example.com/record":"{\"v\":1}",` +
		`"a.example.com/recreate":"x","a.example.com/release":"*","a.example.com/former-uid":"f"},"finalizers":["a.example.com/finalizer","b.example.com/finalizer"]},` +
		`"status":{"phase":"p","records":{"a.example.com":"r","b.example.com":"r"},"conditions":[` +
		`{"type":"StateLost","message":"see the annotation a.example.com/recreate"},{"type":"StateLost","message":"see the annotation b.example.com/recreate"},{"type":"Ready"}]}}`
	marks := patch.Marks{Identity: "a.example.com", Finalizer: "a.example.com/finalizer", Conditions: []string{"StateLost"}}
	for name, test := range map[string]struct {
		given, want string
		subresource bool
		found       []string
	}{
		"status subresource": {marked, stripped, true, []string{
			"record", "annotation a.example.com/recreate", "annotation a.example.com/release", "annotation a.example.com/former-uid",
			"condition StateLost", "finalizer",
		}},
		"no subresource": {marked, stripped, false, []string{
			"record", "annotation a.example.com/recreate", "annotation a.example.com/release", "annotation a.example.com/former-uid",
			"condition StateLost", "finalizer",
		}},
		"another's alone": {stripped, stripped, true, nil},
		"the only one": {
			`{"metadata":{"uid":"u"},"status":{"records":{"a.example.com":"r"}}}`, `{"metadata":{"uid":"u"}}`, true, []string{"record"},
		},
		"the only condition": {
			`{"metadata":{"uid":"u"},"status":{"phase":"p","conditions":[{"type":"StateLost","message":"see the annotation a.example.com/recreate"}]}}`,
			`{"metadata":{"uid":"u"},"status":{"phase":"p"}}`, true,
			[]string{"condition StateLost"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := patch.Strip(decoded(t, test.given), marks, test.subresource)
			if diff := cmp.Diff(test.found, found.Found); diff != "" {
				t.Error(diff)
			}
			if !test.subresource && !found.Status.Empty() {
				t.Errorf("operations for a subresource: %v", found.Status.Operations())
			}
			left := sent(t, sent(t, test.given, found.Status), found.Main)
			if diff := cmp.Diff(decoded(t, test.want), decoded(t, left)); diff != "" {
				t.Error(diff)
			}
			if again := patch.Strip(decoded(t, left), marks, test.subresource); len(again.Found) > 0 || !again.Main.Empty() || !again.Status.Empty() {
				t.Errorf("Strip finds again %v", again.Found)
			}
		})
	}
}

func TestADeletedObjectGoesWithItsLastFinalizer(t *testing.T) {
	marks := patch.Marks{Identity: "a.example.com", Finalizer: "a.example.com/finalizer"}
	for given, want := range map[string][2]bool{
		`{"metadata":{"uid":"u","finalizers":["a.example.com/finalizer"]}}`:                                                                    {false, false},
		`{"metadata":{"uid":"u","deletionTimestamp":"t","finalizers":["a.example.com/finalizer"]},"status":{"records":{"a.example.com":"r"}}}`: {true, true},
		`{"metadata":{"uid":"u","deletionTimestamp":"t","finalizers":["x","a.example.com/finalizer"]}}`:                                        {true, false},
		`{"metadata":{"uid":"u","deletionTimestamp":"t","finalizers":["x"]}}`:                                                                  {false, false},
	} {
		if found := patch.Strip(decoded(t, given), marks, true); found.Held != want[0] || found.Last != want[1] || found.Last && !found.Status.Empty() {
			t.Errorf("%s: held %t, last %t", given, found.Held, found.Last)
		}
	}
}

func decoded(t *testing.T, text string) object.Body {
	t.Helper()
	var body object.Body
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	return body
}

// sent returns the object after the document was applied.
func sent(t *testing.T, text string, document *patch.Document) string {
	t.Helper()
	operations, err := json.Marshal(document.Operations())
	if err != nil {
		t.Fatal(err)
	}
	decodedPatch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		t.Fatal(err)
	}
	after, err := decodedPatch.Apply([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", operations, err)
	}
	return string(after)
}
