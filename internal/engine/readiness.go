package engine

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/einmal-operators/einmal/internal/declaration"
	"github.com/einmal-operators/einmal/internal/selected"
)

// notListed is in the way of a kind until its objects are there.
const notListed = "its objects are not listed yet"

// readiness is what is in the way of each kind, by a name of the kind and of what it is watched for.
type readiness struct {
	// chooser knows which kinds selections choose; nil before it has begun.
	chooser atomic.Pointer[selected.Chooser]

	// waiting is from the name to what is in the way, "" for nothing.
	waiting sync.Map
}

// report notes what is in the way of a kind, "" for nothing.
func (r *readiness) report(name, trouble string) { r.waiting.Store(name, trouble) }

// forget removes a kind.
func (r *readiness) forget(name string) { r.waiting.Delete(name) }

// of returns what is in the way of a kind, or nil.
func (r *readiness) of(kind, name string) error {
	trouble, known := r.waiting.Load(name)
	switch {
	case !known:
		return fmt.Errorf("%s: not started", kind)
	case trouble != "":
		return fmt.Errorf("%s: %s", kind, trouble)
	}
	return nil
}

// ofHandled returns what is in the way of the first kind of some, or of one that selections choose.
func (r *readiness) ofHandled(kinds []declaration.Kind, selections []declaration.Selection) error {
	for _, kind := range kinds {
		if err := r.of(kind.GVK.Kind, kind.GVK.String()); err != nil {
			return err
		}
	}
	switch chooser := r.chooser.Load(); {
	case len(selections) == 0:
		return nil
	case chooser == nil:
		return selected.ErrUnknownKinds
	default:
		return chooser.Ready(r.of)
	}
}
