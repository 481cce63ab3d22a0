package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// restoreFailed is the reason of a database that cannot be filled with a backup: see server.sh.
const restoreFailed = "RestoreFailed"

// restoring returns the backup that a new database is to be filled with, or nil. A database that exists is never filled.
func restoring(db *v1.Database) *v1.BackupSource {
	if db.Status.DataVersion != "" || db.Spec.Bootstrap == nil {
		return nil
	}
	return &db.Spec.Bootstrap.FromBackup
}

// restored returns the backup that a Pod has filled the new database with, or "". The Pod is nil if it does not exist.
func restored(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	location, _ := manifest.Restores(pod.Spec)
	for _, status := range pod.Status.InitContainerStatuses {
		if ended := status.State.Terminated; location != "" && ended != nil && ended.ExitCode == 0 {
			if name, found := strings.CutPrefix(ended.Message, "Restored: "); found {
				return location + "/" + name
			}
		}
	}
	return ""
}

// reportRestored says once that a backup is restored, and returns an error that calls the handler again. The Pod does not serve the database: its next one
// does, without the volume of the backup, which the Database of the backup needs.
func reportRestored(c *change, seen observed) error {
	backup, status := restored(seen.pod), &c.Object.Status
	if backup == "" || status.RestoredFrom != "" && status.DataVersion != "" {
		return nil
	}
	if status.RestoredFrom == "" {
		status.RestoredFrom = backup
		c.Event(einmal.EventNormal, "Restored", "the database is filled with the backup %s", backup)
	}
	return einmal.RequeueAfter(recorded)
}

// restoresOther reports whether a Pod fills a new database and its next one would do that otherwise, or not at all.
func (f findings) restoresOther(pod *corev1.Pod) bool {
	if isReady(pod) || !f.restartPending(pod) {
		return false
	}
	return manifest.RestoresOtherwise(pod.Spec, f.set.Spec.Template.Spec)
}
