package object_test

import (
	"testing"

	"github.com/einmal-operators/einmal/internal/core/object"
)

func TestWhoOwnsAField(t *testing.T) {
	entry := func(name, at string, fields object.Body) any {
		return object.Body{"manager": name, "time": at, "fieldsV1": fields}
	}
	raw := object.Body{"metadata": object.Body{"managedFields": []any{
		entry("us", "2026-11-21T07:00:03Z", object.Body{"f:spec": object.Body{"f:color": object.Body{}}}),
		entry("sizer", "2026-11-21T07:00:01Z", object.Body{"f:spec": object.Body{".": object.Body{}, "f:size": object.Body{}}}),
		entry("labeler", "2026-11-21T07:00:02Z", object.Body{"f:metadata": object.Body{"f:labels": object.Body{}}}),
	}}}
	for _, test := range []struct {
		name, want string
		path       object.Path
	}{
		{"the field itself", "sizer", object.Path{"spec", "size"}},
		{"a map as a whole", "labeler", object.Path{"metadata", "labels", "team"}},
		{"only an ignored manager owns it: the last writer", "labeler", object.Path{"spec", "color"}},
		{"no manager owns it: the last writer", "labeler", object.Path{"status", "phase"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := object.Manager(raw, test.path, "us"); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	if got := object.Manager(object.Body{}, object.Path{"spec"}, "us"); got != "" {
		t.Errorf("%q of an object without managers", got)
	}
}
