// Package primary decides which Pod of a Database may accept writes, and which are standbys. It is pure.
//
// A server accepts writes only in a Pod whose annotation names that very Pod by its uid. So a Pod that is replaced never inherits the permission,
// and no template, ordinal or old label can give it. The operator records the Pod in the status of the Database before it writes the annotation,
// with a term that counts these decisions. A Pod gets a new term only after the Pod of the previous term has ended, or when a person has given that up.
package primary

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// Words that follow the term of a grant.
const (
	// initialize lets the server create an empty database in an empty volume.
	initialize = "initdb"
	// promote lets the server start with the copy of a standby, until it is promoted.
	promote = "promote"
)

// Pod is what the decision needs to know of a Pod.
type Pod struct {
	Name string
	UID  types.UID
	// Terminating reports whether the Pod is being deleted.
	Terminating bool
	// Grant is the annotation of the Pod.
	Grant string
}

// Holder is a Pod of which an object in the cluster says that it got a term.
type Holder struct {
	Pod  string
	Term int64
}

// Latest returns the Pod that got the last term. That is the known one, unless the status was lost or restored from an earlier time: then the claims of
// the volumes and the annotations of the Pods know better. Its uid is "" then, and the result is nil if no Pod has ever got a term.
func Latest(known *v1.Primary, holders []Holder) *v1.Primary {
	for _, one := range holders {
		if one.Term > 0 && (known == nil || one.Term > known.Term) {
			known = &v1.Primary{Pod: one.Pod, Term: one.Term}
		}
	}
	return known
}

// Choose returns the Pod that may accept writes: the latest one as long as it exists, and otherwise the existing one. The argument pod is nil if no
// Pod exists. It returns latest if there is nothing to choose. A Pod that already has a grant, as after a loss of the status, keeps its term.
func Choose(latest *v1.Primary, pod *Pod) *v1.Primary {
	if pod == nil || pod.Terminating || latest != nil && latest.UID == pod.UID {
		return latest
	}
	has, term := Term(*pod), int64(1)
	if latest != nil {
		term = latest.Term + 1
	}
	if latest != nil && latest.UID == "" && has == latest.Term {
		term = has
	}
	return &v1.Primary{Pod: pod.Name, UID: pod.UID, Term: max(term, has)}
}

// Term returns the term of the Pod's own grant, or 0.
func Term(pod Pod) int64 {
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

// PromotionGrant is Grant for a standby that becomes the primary.
func PromotionGrant(chosen v1.Primary) string { return Grant(chosen) + " " + promote }
