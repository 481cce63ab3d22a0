package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

func TestTheConditionThatADeletionIsBlocked(t *testing.T) {
	kind := handler.Kind{Handlers: []handler.Declaration{{ID: "a", Verb: cause.Delete}, {ID: "b", Verb: cause.Delete}}}
	failed := func(ids ...string) record.Record {
		var r record.Record
		for _, id := range ids {
			r = r.With(id, record.Entry{Outcome: record.Failed})
		}
		return r
	}
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	others := []any{object.Body{"type": "Ready", "status": "True"}}
	condition := func(status, since, message string) []any {
		return append(append([]any{}, others...), object.Body{
			"type": "DeletionBlocked", "status": status, "reason": "HandlerFailed", "message": message,
			"observedGeneration": int64(2), "lastTransitionTime": since,
		})
	}
	const end = "; change the object to run them again, or set the annotation op.example.com/release to the id of a handler to delete the object without it"
	list := others
	for _, test := range []struct {
		name          string
		before, after record.Record
		want          []any
		news          bool
	}{
		{"it is not added if no handler has failed", failed(), failed(), others, false},
		{"it begins with the first handler", failed(), failed("a"), condition("True", "2000-01-01T00:01:00Z", "delete handlers failed permanently: a"+end), true},
		{"nothing changes without news", failed("a"), failed("a"), condition("True", "2000-01-01T00:01:00Z", "delete handlers failed permanently: a"+end), false},
		{"another handler changes the text, not the time", failed("a"), failed("a", "b"), condition("True", "2000-01-01T00:01:00Z", "delete handlers failed permanently: a, b"+end), true},
		{"it ends with the last handler", failed("a", "b"), failed(), condition("False", "2000-01-01T00:04:00Z", "no delete handler blocks the deletion"), true},
	} {
		now, news := start, false
		for _, c := range Conditions("op.example.com", kind, Change{Cause: cause.Delete, Before: &test.before, After: test.after}) {
			list, news = c.Put(list, int64(2), now)
		}
		start = start.Add(time.Minute)
		if diff := cmp.Diff(test.want, list); diff != "" || news != test.news {
			t.Errorf("%s: news is %t, want %t; conditions (-want +got):\n%s", test.name, news, test.news, diff)
		}
	}
}
