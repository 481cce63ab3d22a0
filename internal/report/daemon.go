package report

import (
	"time"

	"github.com/einmal-operators/einmal/internal/core/record"
)

// What people see of a daemon that does not end.
const (
	failedDaemonSentence = "daemon %s failed permanently and is not restarted until the operator restarts: %v"
	abandonedReason      = "DaemonAbandoned"
	abandonedSentence    = "daemon %s has not returned %s after its context was cancelled. Einmal no longer waits for it, but it may still be running"
)

// DaemonStopping reports that a daemon was asked to stop.
func (o Object) DaemonStopping(id string, why error) {
	o.Log.Info("stopping daemon", "handler", id, "reason", why.Error())
}

// DaemonStopped reports how an attempt of a daemon has ended that was asked to stop.
func (o Object) DaemonStopped(attempt Ended) {
	if log := o.attemptLog(attempt); attempt.Result.Outcome == record.Done {
		log.Info("daemon stopped")
	} else {
		log.Error("daemon stopped with an error", "error", attempt.Err)
	}
	o.count(attempt.Run, attempt.Result.Outcome, attempt.Took)
}

// DaemonEnded reports how an attempt of a daemon has ended that was not asked to stop.
func (o Object) DaemonEnded(attempt Ended) {
	log, result := o.attemptLog(attempt), attempt.Result
	switch {
	case result.Outcome == record.Done && !result.Ignored:
		log.Info("daemon returned, will start again when the operator restarts")
	case result.Outcome == record.Failed:
		log.Error("daemon failed permanently, will start again when the operator restarts", "error", attempt.Err)
		o.warn(failedReason, failedDaemonSentence, attempt.Run.ID, attempt.Err)
	default:
		o.logEnd(attempt)
	}
	o.count(attempt.Run, result.Outcome, attempt.Took)
}

// DaemonAbandoned reports that Einmal stops waiting for a daemon, which has not returned after its context was cancelled.
func (o Object) DaemonAbandoned(id string, after time.Duration) {
	o.Log.Warn("daemon abandoned, it has not returned after its context was cancelled", "handler", id, "after", after.String())
	o.warn(abandonedReason, abandonedSentence, id, after)
}
