package cause_test

import (
	"testing"

	"github.com/einmal-operators/einmal/internal/core/cause"
)

// The first rule of the table of causes that matches wins. Scenarios 4 and 34 (docs/concepts/scenarios.md).
func TestCauses(t *testing.T) {
	for name, test := range map[string]struct {
		facts cause.Facts
		want  cause.Cause
	}{
		"not in the cache":                                  {cause.Facts{Recorded: true, Marked: true, Deleting: true}, cause.Gone},
		"deleted, never recorded nor marked":                {cause.Facts{Exists: true, Deleting: true}, cause.Free},
		"deleted, and the record says that it has finished": {cause.Facts{Exists: true, Deleting: true, Recorded: true, Marked: true, DeletionDone: true}, cause.Free},
		"deleted, marked only":                              {cause.Facts{Exists: true, Deleting: true, Marked: true}, cause.Delete},
		"deleted, recorded only: the finalizer was lost":    {cause.Facts{Exists: true, Deleting: true, Recorded: true}, cause.Delete},
		"deleted while creation is open":                    {cause.Facts{Exists: true, Deleting: true, Recorded: true, CreationOpen: true}, cause.Delete},
		"no record, created before the watermark":           {cause.Facts{Exists: true, Settled: true, Marked: true, FirstSight: true}, cause.Lost},
		"deleted, created before the watermark":             {cause.Facts{Exists: true, Deleting: true, Marked: true, Settled: true}, cause.Delete},
		"a record, and older than the watermark":            {cause.Facts{Exists: true, Recorded: true, Settled: true}, cause.Noop},
		"no record":                                         {cause.Facts{Exists: true}, cause.Create},
		"no record, but our finalizer: it proves nothing":   {cause.Facts{Exists: true, Marked: true}, cause.Create},
		"creation open and changed":                         {cause.Facts{Exists: true, Recorded: true, CreationOpen: true, Changed: true}, cause.Create},
		"changed":                                           {cause.Facts{Exists: true, Recorded: true, Changed: true}, cause.Update},
		"changed while down":                                {cause.Facts{Exists: true, Recorded: true, Changed: true, FirstSight: true}, cause.Update},
		"unchanged, first sight in this process":            {cause.Facts{Exists: true, Recorded: true, FirstSight: true}, cause.Resume},
		"unchanged, not looked at in this process":          {cause.Facts{Exists: true, Recorded: true, NeedsReconcile: true}, cause.Reconcile},
		"resumed and not looked at":                         {cause.Facts{Exists: true, Recorded: true, FirstSight: true, NeedsReconcile: true}, cause.Resume},
		"unchanged":                                         {cause.Facts{Exists: true, Recorded: true}, cause.Noop},
	} {
		if got := cause.Of(test.facts); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}
