package reconciler

import (
	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/objects"
)

// State is what a process remembers of the objects of one kind. It outlives a Reconciler when the kind is watched in another version: the
// objects are the same.
type State struct {
	Objects objects.Objects[memory]
}

// TakeUp prepares the state for another Reconciler. Changes in between have triggered no handlers, so the handlers that watch other kinds
// look again.
func (s *State) TakeUp(woken []declaration.Relation) {
	for _, known := range s.Objects.All() {
		for _, relation := range woken {
			delete(known.levels, relation.Handler)
		}
	}
}
