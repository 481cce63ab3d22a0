package objects

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/patch"
)

// Edits are changes of its object that a daemon wants written.
type Edits struct {
	// UID is that of the object which the daemon is for.
	UID   string
	Run   handler.Run
	Edits []patch.Edit
	// Answer is called with the result; it may be nil.
	Answer func(object.Body, error)
}

// PutEdits adds edits, which are written in their order.
func (o *Objects[Known]) PutEdits(key types.NamespacedName, next Edits) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.entry(key)
	e.edits = append(e.edits, next)
}

// TakeEdits returns the edits of an object that are to be written next, and removes them. It also removes those of another object that had the name before.
func (o *Objects[Known]) TakeEdits(key types.NamespacedName, uid string) (next Edits, found bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.change(key, func(e *entry[Known]) {
		e.edits = slices.DeleteFunc(e.edits, func(one Edits) bool { return one.UID != uid })
		if found = len(e.edits) > 0; found {
			next, e.edits = e.edits[0], e.edits[1:]
		}
	})
	return next, found
}

// DropEdits removes all edits of an object.
func (o *Objects[Known]) DropEdits(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.change(key, func(e *entry[Known]) { e.edits = nil })
}

// HasEdits reports whether edits of an object are to be written.
func (o *Objects[Known]) HasEdits(key types.NamespacedName) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := o.byKey[key]
	return e != nil && len(e.edits) > 0
}
