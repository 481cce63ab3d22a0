package main

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// restoreFailed is the reason of a database that cannot be filled with a backup: see server.sh.
const restoreFailed = "RestoreFailed"

// setExtensions parses the flag with the extensions that the superuser creates in a restore.
func (d *databases) setExtensions(value string) error {
	extensionName := regexp.MustCompile(`^[A-Za-z0-9_-]+$`) // load.sh reads them from a variable.
	d.extensions = nil
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); !extensionName.MatchString(name) {
			return fmt.Errorf("%q is not the name of an extension, such as postgis", name)
		}
		d.extensions = append(d.extensions, name)
	}
	return nil
}

// restoring returns the backup that a new database is to be filled with, or nil. A database that exists is never filled.
func restoring(db *v1.Database) *v1.BackupSource {
	if db.Status.DataVersion != "" || db.Spec.Bootstrap == nil {
		return nil
	}
	return &db.Spec.Bootstrap.FromBackup
}

// restored returns the backup that a Pod has filled the new database with, or "", and what of it could not be restored: see load.sh. The Pod is nil if it does
// not exist.
func restored(pod *corev1.Pod) (backup string, missing []string) {
	if pod == nil {
		return "", nil
	}
	location, _ := manifest.Restores(pod.Spec)
	for _, status := range pod.Status.InitContainerStatuses {
		if ended := status.State.Terminated; location != "" && ended != nil && ended.ExitCode == 0 {
			if text, found := strings.CutPrefix(ended.Message, "Restored: "); found {
				lines := strings.Split(strings.ToValidUTF8(strings.TrimSpace(text), ""), "\n")
				return location + "/" + lines[0], lines[1:]
			}
		}
	}
	return "", nil
}

// isRestored reports whether a Pod has filled the new database with a backup.
func isRestored(pod *corev1.Pod) bool {
	backup, _ := restored(pod)
	return backup != ""
}

// reportRestored says once that a backup is restored, and returns an error that calls the handler again. The Pod does not serve the database: its next one
// does, without the volume of the backup, which the Database of the backup needs.
func reportRestored(c *change, seen observed) error {
	backup, missing := restored(seen.pod)
	status := &c.Object.Status
	if backup == "" || status.RestoredFrom != "" && status.DataVersion != "" {
		return nil
	}
	if status.RestoredFrom == "" {
		status.RestoredFrom = backup
		c.Event(einmal.EventNormal, "Restored", "the database is filled with the backup %s", backup)
		set(c.Object, restoreCompleteness(c.Object, backup, missing))
		if len(missing) > 0 {
			c.Event(einmal.EventWarning, "RestoredIncompletely", "%s", reportMissing(c.Object, backup, missing))
		}
	}
	return einmal.RequeueAfter(recorded)
}

// restoreCompleteness reports whether the database has all that the backup has. It never changes, because nothing else is restored later.
func restoreCompleteness(db *v1.Database, backup string, missing []string) metav1.Condition {
	if len(missing) > 0 {
		return no(v1.ConditionRestoreComplete, "PartsMissing", reportMissing(db, backup, missing))
	}
	return yes(v1.ConditionRestoreComplete, "Complete", "the database has everything that the backup "+backup+" has")
}

// reportMissing says what of a backup could not be restored, and where to read why.
func reportMissing(db *v1.Database, backup string, missing []string) string {
	return fmt.Sprintf("the backup %s is restored with all rows of the app, but without: %s; for the errors: kubectl exec --namespace %s %s -- cat %s",
		backup, strings.Join(missing, ", "), db.Namespace, manifest.Pod(db, 0), manifest.RestoreLog)
}

// restoresOther reports whether a Pod fills a new database and its next one would do that otherwise, or not at all.
func (f findings) restoresOther(pod *corev1.Pod) bool {
	if isReady(pod) || !f.restartPending(pod) {
		return false
	}
	return manifest.RestoresOtherwise(pod.Spec, f.set.Spec.Template.Spec)
}
