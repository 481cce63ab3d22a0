package report

import (
	"github.com/einmal-operators/einmal/internal/core/cause"
	"github.com/einmal-operators/einmal/internal/core/handler"
	"github.com/einmal-operators/einmal/internal/core/object"
)

// What people see when a delete handler has failed permanently and keeps its object.
const (
	blockedCondition = "DeletionBlocked"
	blockedReason    = "HandlerFailed"
	blockedSentence  = "delete handler %s failed permanently and blocks the deletion. To run it again, fix the cause and change " +
		"the object; to delete the object without it, set the annotation %s to %s"
)

// DeletionSupersedes reports that the deletion of the object has ended handlers that were not finished.
func (o Object) DeletionSupersedes(handlers []string) {
	o.Log.Info("deletion supersedes unfinished handlers", "handlers", handlers)
}

// ReleaseIgnored reports that the annotation which releases an object names none of its delete handlers.
func (o Object) ReleaseIgnored(value string, known []string) {
	o.Log.Warn("release annotation ignored, it names no delete handler", "remedy", "set it to the id of a delete handler, or to * for all",
		"annotation", object.ReleaseAnnotation(o.kind.Identity), "value", value, "known", known)
}

// GivenUp reports a handler that is not tried any more, although no attempt was made now.
func (o Object) GivenUp(given handler.GivenUp) {
	log := o.Log.With("handler", given.ID)
	if given.ByHand {
		log.Warn("delete handler released by annotation, what it cleans up may be left behind",
			"annotation", object.ReleaseAnnotation(o.kind.Identity), "failure", given.Why)
		return
	}
	log.Error("handler failed permanently without another attempt, will run again when its fields change",
		"gaveUp", given.Why, "error", given.Result.Message)
	o.warnFailed(given.Run, given.Result.Message)
}

// ReleasedUndecodable reports that the finalizer goes without the delete handlers of an object that cannot be decoded.
func (o Object) ReleasedUndecodable() {
	o.Log.Warn("delete handlers released by annotation, object cannot be decoded, what they clean up may be left behind",
		"annotation", object.ReleaseAnnotation(o.kind.Identity))
}

// blocked says what to do about a delete handler that has failed permanently and keeps its object: in the log and as an event. The condition
// is written with the record.
func (o Object) blocked(failed handler.Declaration) {
	if failed.Verb != cause.Delete || failed.Releases || failed.Optional {
		return
	}
	annotation := object.ReleaseAnnotation(o.kind.Identity)
	o.Log.Warn("deletion blocked by failed handler", "handler", failed.ID, "remedy", annotation+"="+failed.ID)
	o.warn(blockedCondition, blockedSentence, failed.ID, annotation, failed.ID)
}
