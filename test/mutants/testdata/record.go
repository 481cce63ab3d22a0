// Package engine: helper functions of mutants. Only the build of TestMutantsAreKilled contains this file.
package engine

import (
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// removeFormerFirst removes the record in the other carrier with the requests that write the preferred one, of which that of the
// other carrier goes first.
func (p *pass) removeFormerFirst(main, status *request) {
	former, _ := p.description.Carrier.Other()
	target := main
	if p.resourceOf(former) == statusResource {
		target = status
	}
	target.document.Edit(patch.Edit{Path: former.Path(p.settings.Identity), Remove: true})
}
