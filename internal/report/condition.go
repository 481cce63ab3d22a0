package report

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
	"github.com/einmal-operators/einmal/internal/core/record"
)

// What people see when a person has to find out what came of an effect outside of the cluster.
const (
	undecidedCondition = "EffectUndecided"
	undecidedReason    = "ResultUnknown"
)

// ConditionTypes returns the types of the conditions that Einmal sets on objects.
func ConditionTypes() []string { return []string{LostCondition, blockedCondition, undecidedCondition} }

// Condition is one that Einmal itself sets, beside those of handlers.
type Condition struct {
	Type   string
	reason string
	// message is the text while the condition holds, ended the one afterwards.
	message, ended string
	holds          bool
}

// Change is a change of an object's record. Before is nil if there was no record.
type Change struct {
	Cause  cause.Cause
	Before *record.Record
	After  record.Record
}

// Conditions returns the conditions that begin, hold on or end with a change of the record. Kind has the declared handlers.
func Conditions(identity string, kind handler.Kind, change Change) []Condition {
	before := change.Before
	if before == nil {
		before = &record.Record{}
	}
	var found []Condition
	lost := change.Cause == cause.Lost
	if lost || change.Before != nil && before.Recreated != change.After.Recreated {
		found = append(found, lostState(identity, lost))
	}
	if blocked := kind.Blocked(change.After); len(blocked) > 0 || len(kind.Blocked(*before)) > 0 {
		found = append(found, deletionBlocked(identity, blocked))
	}
	if asking := kind.Asking(change.After); len(asking) > 0 || len(kind.Asking(*before)) > 0 {
		found = append(found, effectUndecided(identity, asking))
	}
	return found
}

func lostState(identity string, holds bool) Condition {
	return Condition{
		Type: LostCondition, reason: lostReason, holds: holds,
		message: "the record is missing; to run the create handlers once, set the annotation " +
			object.RecreateAnnotation(identity) + " to a new value",
		ended: "the create handlers were requested by annotation",
	}
}

func deletionBlocked(identity string, handlers []string) Condition {
	return Condition{
		Type: blockedCondition, reason: blockedReason, holds: len(handlers) > 0,
		message: "delete handlers failed permanently: " + strings.Join(handlers, ", ") + "; change the object to run them again, " +
			"or set the annotation " + object.ReleaseAnnotation(identity) + " to the id of a handler to delete the object without it",
		ended: "no delete handler blocks the deletion",
	}
}

// effectUndecided is the condition of an object with effects of which a person has to say what came of them.
func effectUndecided(identity string, asking []handler.Asking) Condition {
	ways := make([]string, len(asking))
	for i, one := range asking {
		ways[i] = one.Handler + "/" + one.Effect + ": report it with the annotation " + object.EffectAnnotation(identity, one.Token)
	}
	return Condition{
		Type: undecidedCondition, reason: undecidedReason, holds: len(asking) > 0,
		message: "the results of these effects are unknown: " + strings.Join(ways, ", "),
		ended:   "no effect has an unknown result",
	}
}

// Put returns a list of conditions with this one, and whether that is a change. The generation is that of the object. A condition that has
// never held is not added.
func (c Condition) Put(list []any, generation any, now time.Time) ([]any, bool) {
	status, message := string(metav1.ConditionFalse), c.ended
	if c.holds {
		status, message = string(metav1.ConditionTrue), c.message
	}
	others, since := make([]any, 0, len(list)+1), now.UTC().Format(time.RFC3339)
	var known object.Body
	for _, item := range list {
		if one, is := item.(object.Body); is && object.Text(one, "type") == c.Type {
			known = one
		} else {
			others = append(others, item)
		}
	}
	was := object.Text(known, "status")
	if known == nil && !c.holds || was == status && (!c.holds || object.Text(known, "message") == c.message) {
		return list, false
	}
	if was == status {
		since = object.Text(known, "lastTransitionTime")
	}
	return append(others, object.Body{
		"type": c.Type, "status": status, "reason": c.reason, "message": message,
		"observedGeneration": generation, "lastTransitionTime": since,
	}), true
}
