package primary

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// A failover makes a standby the primary that may lack what the primary has written last. Only a person can ask for it, with the uid of the Pod that is given
// up: the operator cannot know whether its server has ended. A uid is never used again, so an old request has no effect on a later primary.

// Refused returns why a request to give up the Pod with a uid is refused, or "". The argument latest is nil if no Pod has ever been the primary, and
// available reports whether the primary accepts connections.
func Refused(asked types.UID, latest *v1.Primary, available bool) string {
	switch {
	case latest == nil:
		return "there has been no primary yet"
	case latest.UID != asked:
		return fmt.Sprintf("the uid %s is not that of the primary, which is the Pod %s with the uid %s", asked, latest.Pod, latest.UID)
	case available:
		return fmt.Sprintf("the Pod %s accepts connections: set spec.primary, and nothing is lost", latest.Pod)
	}
	return ""
}

// Diverged reports whether a standby has received more of a timeline than the primary had when it left that. Then it can never follow the primary again. The
// argument forks says where the primary has left timelines, in bytes of the write-ahead log.
func Diverged(forks map[int64]int64, timeline, received int64) bool {
	at, left := forks[timeline]
	return left && received > at
}

// Candidate is a standby that accepts connections.
type Candidate struct {
	Pod string
	UID types.UID
	// Timeline is the timeline of the write-ahead log that it follows, and Received how much of that it has, in bytes.
	Timeline, Received int64
}

// MostAdvanced returns the candidate that has most of what the former primary has written, the first of those that have as much.
func MostAdvanced(candidates []Candidate) Candidate {
	return slices.MaxFunc(candidates, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.Timeline, b.Timeline), cmp.Compare(a.Received, b.Received))
	})
}
