// Package cause names why an operator is called for an object.
package cause

// Cause is the reason of a pass.
type Cause string

// The causes, in the order in which they are looked for.
const (
	Gone   Cause = "gone"   // the object does not exist any more
	Alien  Cause = "alien"  // no handler is for such objects, and none ever was for this one
	Free   Cause = "free"   // it is being deleted and is not ours to hold
	Delete Cause = "delete" // it is being deleted and delete handlers have to run
	Lost   Cause = "lost"   // it was handled, and its record was wiped while no process of the operator ran
	Create Cause = "create" // it was never handled, or its creation is not finished
	Resume Cause = "resume" // handled before, unchanged, and first seen by this process
	Update Cause = "update" // something that a handler looks at has changed
	Noop   Cause = "noop"   // nothing that concerns a handler has changed

	// Reconcile is first sight, or a change, of a state that a level-triggered handler has not looked at.
	Reconcile Cause = "reconcile"
)

// What handlers with a life of their own are called for. No pass has them for its cause: they go with any of an object that
// is not being deleted.
const (
	Timer  Cause = "timer"  // it is time
	Daemon Cause = "daemon" // the object is there, and the handler is for it
)

// Facts is all that a cause is decided from.
type Facts struct {
	Exists       bool
	Alien        bool // no handler is for it, and it has no record
	Deleting     bool // it has a deletionTimestamp
	Marked       bool // it has our finalizer
	Recorded     bool // it has a record for its uid
	DeletionDone bool // the record says that the delete handlers are done
	Settled      bool // it is older than the watermark: every object as old as it has had a record
	CreationOpen bool // the record says that a create handler has not finished
	Changed      bool // a view differs from what its handler has seen, or an update handler has not finished
	FirstSight   bool // resume handlers have not run in this process
	Unlooked     bool // a level-triggered handler has not succeeded with its view in this process
}

// Of names the cause; the first rule that matches wins.
func Of(f Facts) Cause {
	switch {
	case !f.Exists:
		return Gone
	case f.Alien:
		return Alien
	case f.Deleting && (f.DeletionDone || !f.Recorded && !f.Marked):
		return Free
	case f.Deleting:
		return Delete
	case !f.Recorded && f.Settled:
		return Lost
	case !f.Recorded || f.CreationOpen:
		return Create
	case f.Changed:
		return Update
	case f.FirstSight:
		return Resume
	case f.Unlooked:
		return Reconcile
	default:
		return Noop
	}
}
