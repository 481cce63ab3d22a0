// Package cause determines why an operator reconciles an object.
package cause

// Cause is the reason for a reconciliation.
type Cause string

// The causes, in the order in which Of checks them.
const (
	Gone      Cause = "gone"      // the object no longer exists
	Unmatched Cause = "unmatched" // no handler matches the object, and none ever did
	Free      Cause = "free"      // the object is being deleted and the operator does not hold it
	Delete    Cause = "delete"    // the object is being deleted and delete handlers have to run
	Lost      Cause = "lost"      // the object was handled, but its record was removed while no process of the operator ran
	Create    Cause = "create"    // the object was never handled, or its creation has not finished
	Resume    Cause = "resume"    // the object was handled before, has not changed, and is new to this process
	Update    Cause = "update"    // something that a handler looks at has changed
	Noop      Cause = "noop"      // nothing relevant to a handler has changed

	// Reconcile means that a level-triggered handler has not seen the current state: at first sight, or after a change.
	Reconcile Cause = "reconcile"
)

// The causes of handlers that run independently of changes. Of never returns them: timers and daemons run beside any other
// cause while the object is not being deleted.
const (
	Timer  Cause = "timer"  // the interval of the timer has passed
	Daemon Cause = "daemon" // the object exists and the daemon's filters match
)

// Facts holds everything that Of needs to determine the cause.
type Facts struct {
	Exists         bool
	Unmatched      bool // no handler matches the object, and it has no record
	Deleting       bool // it has a deletionTimestamp
	Marked         bool // it has the operator's finalizer
	Recorded       bool // it has a record with its uid
	DeletionDone   bool // according to the record, the delete handlers have finished
	Settled        bool // it is older than the watermark: every object of that age has had a record
	CreationOpen   bool // according to the record, a create handler has not finished
	Changed        bool // a handler's view differs from what the handler has seen, or an update handler has not finished
	FirstSight     bool // resume handlers have not run in this process
	NeedsReconcile bool // a level-triggered handler has not succeeded with the current view in this process
}

// Of returns the cause. The first rule that matches wins.
func Of(f Facts) Cause {
	switch {
	case !f.Exists:
		return Gone
	case f.Unmatched:
		return Unmatched
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
	case f.NeedsReconcile:
		return Reconcile
	default:
		return Noop
	}
}
