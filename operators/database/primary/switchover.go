package primary

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// A switchover makes a standby the primary. Each of its decisions is in the status of the Database before it takes effect:
//
//  1. Stopping: the Pod of the primary is deleted. A finalizer keeps the object until the operator has read the report of its server.
//  2. Promoting: the server has reported its shutdown checkpoint, and the standby has replayed it. The standby has the next term, and is promoted.
//
// If the server does not end cleanly, or the standby lacks something, the phase is Failed. Then the standby gets no term, and the former primary continues.

// Action is what a switchover does next.
type Action int

// The actions.
const (
	// Wait: the server of the former primary has not ended yet.
	Wait Action = iota
	// Stop: the Pod of the former primary must be deleted, but the object must stay.
	Stop
	// Compare: the server has ended. The standby becomes the primary when it has replayed everything.
	Compare
	// Abandon: the former primary remains the primary.
	Abandon
)

// Former is what a switchover needs to know of the Pod of the former primary.
type Former struct {
	Terminating bool
	// Kept reports whether a finalizer keeps the object until the operator has read what the server has reported.
	Kept bool
	// Forced reports whether the Pod was deleted by force, without a report of its node.
	Forced bool
	// Ended reports whether the server has ended, and Said is the termination message of its container.
	Ended bool
	Said  string
}

// shutdownReport begins the termination message of a server that has written everything. The location of its shutdown checkpoint follows.
const shutdownReport = "ShutDown: "

// Next returns what a switchover in the phase Stopping does next. The text is the location of the shutdown checkpoint for Compare, and the cause for
// Abandon. The argument former is nil if its Pod is gone, and target if that of the standby is.
func Next(moving v1.Switchover, former *Former, target *Pod) (Action, string) {
	const unknown = "the server in the Pod %s has not reported a clean shutdown"
	switch {
	case former == nil:
		return Abandon, fmt.Sprintf(unknown, moving.From)
	case target == nil || target.UID != moving.UID || target.Terminating:
		return Abandon, fmt.Sprintf("the Pod %s of the standby was deleted", moving.To)
	case former.Ended:
		location, written := strings.CutPrefix(former.Said, shutdownReport)
		if !written {
			return Abandon, fmt.Sprintf(unknown, moving.From)
		}
		return Compare, location
	case former.Forced:
		return Abandon, fmt.Sprintf("the Pod %s was deleted by force", moving.From)
	case former.Terminating && !former.Kept:
		return Abandon, fmt.Sprintf("the Pod %s was deleted by something else", moving.From)
	case !former.Terminating:
		return Stop, ""
	}
	return Wait, ""
}

// Promoted returns the primary after a switchover.
func Promoted(former v1.Primary, pod string, uid types.UID) *v1.Primary {
	return &v1.Primary{Pod: pod, UID: uid, Term: former.Term + 1}
}
