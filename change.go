package einmal

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/engine"
)

// Reason tells a handler why it runs.
type Reason string

// The reasons. Whether an object was handled before is told by the Reason, never by Old.
const (
	Create Reason = Reason(cause.Create) // the object was never handled, or its creation is not finished
	Update Reason = Reason(cause.Update) // what the handler looks at has changed since it last succeeded
	Delete Reason = Reason(cause.Delete) // the object is being deleted and waits for the handler
	Resume Reason = Reason(cause.Resume) // the object was handled by an earlier process, and is first seen by this one

	// Reconcile: what the handler looks at is to be looked at in this process, or is to be looked at again.
	Reconcile Reason = Reason(cause.Reconcile)
	// Timer: it is time for a timer.
	Timer Reason = Reason(cause.Timer)
	// Daemon: the object is there, and is one that the daemon is for.
	Daemon Reason = Reason(cause.Daemon)
)

// The reasons of OnEvent: what has happened to the object.
const (
	EventListed   Reason = Reason(engine.Listed)   // it was there when this process began to watch
	EventAdded    Reason = Reason(engine.Added)    // it was created
	EventModified Reason = Reason(engine.Modified) // it has changed in whatever way
	EventDeleted  Reason = Reason(engine.Deleted)  // it is gone; Object is how it was seen last
)

// Op is what became of a field.
type Op string

// The kinds of difference. A list is one field: it is changed as a whole.
const (
	Added   Op = object.Added
	Changed Op = object.Changed
	Removed Op = object.Removed
)

// Difference is one field that differs. Old is nil for Added, New for Removed. Values are decoded JSON; do not change
// them.
type Difference struct {
	Op   Op
	Path []string
	Old  any
	New  any
}

// Change is what a handler is given: the object and why. It is valid until the handler returns.
type Change[T any] struct {
	// Object is the handler's own copy, with what earlier handlers of the same pass have changed. What the handler
	// changes on it is written afterwards, also when the handler fails, only the touched fields. Finalizers, owner references and
	// other metadata than labels and annotations are not to be changed here: that fails the attempt.
	Object *T
	// Reason is why the handler runs.
	Reason Reason
	// Diff is what changed since the handler last succeeded, cut to its fields and sorted by path. What the schema fills in since is
	// not among it. It is empty where Old is not there.
	Diff []Difference
	// Attempt counts from 1, across restarts.
	Attempt int
	// MaybeRepeated tells that an earlier run of this handler for this reason cannot be ruled out: a retry, a call that the
	// handler has waited for, a creation or deletion that had failed for good, an object that was there when the operator
	// started, one that a replica sees first within a minute after it was elected, since the one before may have handled it, a
	// creation that a person has asked for once more. False is a promise only as long as one replica of the operator acts.
	MaybeRepeated bool
	// WokenBy are the related objects whose changes have woken a Reconcile, ten at most: see Owns and Watches. It is empty where
	// the object itself is the reason.
	WokenBy []Related
	// Started is when the first attempt was made.
	Started time.Time
	// Client reads and writes other objects. Handled kinds, and those of Owns, Watches and Index, are read from the cache with Get, in the
	// Go type that they were declared with; all else goes to the API server.
	// Updates and merge patches of handled objects leave their records alone. It also implements client.WithWatch, for watches of your own: they
	// go to the API server, and the handler's context ends them.
	Client client.Client
	// Log has the object, its generation, the handler, the reason and the attempt as attributes. What is recognised as secret does
	// not get through: in texts, errors and other values, and what is given under a name that says so, such as password or
	// token. Of a Secret only its name is logged; give the name alone as secretName, since secret is such a name.
	Log *slog.Logger

	old   func() (*T, bool)
	memo  func() *sync.Map
	apply applier
	say   func(kind, reason, text string)
	// steps are the handler's parts, nil where nothing is recorded; left is what it has made of Object so far.
	steps *engine.Steps
	left  func() (object.Body, error)
	// was is what Old is made of, is what Object was when the handler was called.
	was, is object.Body
	// sync and stopping are what daemons have; nil for other handlers.
	sync     func(ctx context.Context) error
	stopping <-chan struct{}
}

// Old is the object as it was when the handler last succeeded: namespace, name, uid and all that a handler can look
// at, without status and other metadata, with the defaults that the schema has now. It is false where no such state is kept: at creation, of core Secrets, of very
// large objects, and never something to conclude from; test Reason instead.
func (c *Change[T]) Old() (*T, bool) { return c.old() }

func differences(found []object.Difference) []Difference {
	public := make([]Difference, len(found))
	for i, difference := range found {
		public[i] = Difference{Op: Op(difference.Op), Path: difference.Path, Old: difference.Old, New: difference.New}
	}
	return public
}
