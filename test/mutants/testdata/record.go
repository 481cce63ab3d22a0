// Package journal: helper functions of mutants. Only the build of TestMutantsAreKilled contains this file.
package journal

import (
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// removeFormerFirst removes the record in the other carrier with the documents that write the preferred one, of which that of the
// other carrier goes first.
func removeFormerFirst(target Target, main, status *Document) {
	former, _ := target.Carrier.Other()
	carrier := main
	if Resource(former, target.HasStatus) == Status {
		carrier = status
	}
	carrier.Changes.Edit(patch.Edit{Path: former.Path(target.Identity), Remove: true})
}
