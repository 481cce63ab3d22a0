package primary

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// A switchover makes a standby the primary. Each of its decisions is in the status of the Database before it takes effect:
//
//  1. Stopping: the Pod of the primary is deleted. It stays as an object until the operator has read what its server has said last.
//  2. Promoting: the server has written everything, and the standby has replayed it. So the standby gets the next term, and is promoted.
//
// If something speaks against it, the phase is Failed before the standby has got a term, and the former primary goes on.

// Action is what a switchover does next.
type Action int

// The actions.
const (
	// Wait: the server of the former primary has not ended yet.
	Wait Action = iota
	// Stop: the Pod of the former primary must be deleted, and kept as an object.
	Stop
	// Compare: the server has ended. The standby becomes the primary when it has replayed everything.
	Compare
	// Abandon: the former primary must go on.
	Abandon
)

// Former is what a switchover needs to know of the Pod of the former primary.
type Former struct {
	Terminating bool
	// Kept reports whether the object stays until its last words are read.
	Kept bool
	// Forced reports whether something else than its node has said that it has ended.
	Forced bool
	// Ended reports whether the server has ended, and Said what its script has said then.
	Ended bool
	Said  string
}

// lastWords begin what the script says after the server has written everything. The end of its write-ahead log follows.
const lastWords = "ShutDown: "

// Next returns what a switchover in the phase Stopping does next. The text is the end of the write-ahead log of the former primary for Compare, and the
// cause for Abandon. The argument former is nil if its Pod is gone, and target if that of the standby is.
func Next(moving v1.Switchover, former *Former, target *Pod) (Action, string) {
	const unknown = "the server in the Pod %s has ended without having said that it has written everything"
	switch {
	case former == nil:
		return Abandon, fmt.Sprintf(unknown, moving.From)
	case target == nil || target.UID != moving.UID || target.Terminating:
		return Abandon, fmt.Sprintf("the Pod %s of the standby was deleted", moving.To)
	case former.Ended:
		location, written := strings.CutPrefix(former.Said, lastWords)
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
