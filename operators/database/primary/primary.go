// Package primary decides which Pod of a Database may accept writes, and which are standbys. It is pure.
//
// A server accepts writes only in a Pod whose annotation names that very Pod by its uid. So a Pod that is replaced never inherits the permission,
// and no template, ordinal or old label can give it. The operator records the Pod in the status of the Database before it writes the annotation,
// with a term that counts these decisions. A Pod gets a new term only after the Pod of the previous term has ended.
package primary

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// initialize is the word that lets the server create an empty database in an empty volume.
const initialize = "initdb"

// Pod is what the decision needs to know of a Pod.
type Pod struct {
	Name string
	UID  types.UID
	// Terminating reports whether the Pod is being deleted.
	Terminating bool
	// Grant is the annotation of the Pod.
	Grant string
}

// Choose returns the Pod that may accept writes: the known one as long as it exists, and otherwise the existing one. The argument pod is nil if no
// Pod exists. It returns known if there is nothing to choose. A Pod that already has a grant, as after a loss of the status, keeps its term.
func Choose(known *v1.Primary, pod *Pod) *v1.Primary {
	if pod == nil || pod.Terminating || known != nil && known.UID == pod.UID {
		return known
	}
	term := int64(1)
	if known != nil {
		term = known.Term + 1
	}
	return &v1.Primary{Pod: pod.Name, UID: pod.UID, Term: max(term, granted(*pod))}
}

// granted returns the term of the Pod's own grant, or 0.
func granted(pod Pod) int64 {
	words := strings.Fields(pod.Grant)
	if len(words) < 2 || words[0] != string(pod.UID) {
		return 0
	}
	term, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return 0
	}
	return term
}

// Grant returns the annotation of the Pod that may accept writes.
func Grant(chosen v1.Primary) string {
	return string(chosen.UID) + " " + strconv.FormatInt(chosen.Term, 10)
}

// StandbyGrant returns the annotation of a Pod that is a standby.
func StandbyGrant(pod types.UID) string { return string(pod) + " standby" }

// InitialGrant is Grant where an empty volume may become an empty database.
func InitialGrant(chosen v1.Primary) string { return Grant(chosen) + " " + initialize }
