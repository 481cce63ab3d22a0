// Package engine: helper functions of mutants. Only the build of TestMutantsAreKilled contains this file.
package engine

import (
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// removeFormerFirst removes the record in the other carrier with the documents that write the preferred one, of which that of the
// other carrier goes first.
func (p *pass) removeFormerFirst(main, status *document) {
	former, _ := p.description.Carrier.Other()
	target := main
	if p.resourceOf(former) == statusResource {
		target = status
	}
	target.changes.Edit(patch.Edit{Path: former.Path(p.settings.Identity), Remove: true})
}
