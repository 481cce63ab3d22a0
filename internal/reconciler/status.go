package reconciler

import (
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/journal"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// reportTouches reports what a handler has set outside of the status, and where it undoes in the status what another handler did.
func (p *pass) reportTouches(run handler.Run, edits []patch.Edit, overwritten []journal.Overwritten) {
	p.report.OwnEdit(run.ID, outsideStatus(patch.Touches(edits)))
	p.report.StatusConflict(run.ID, overwritten)
}

// outsideStatus returns the fields outside of the status.
func outsideStatus(found []patch.Touch) []string {
	var fields []string
	for _, touch := range found {
		if !touch.Path.Under(journal.Status) {
			fields = append(fields, touch.Path.String())
		}
	}
	return fields
}
