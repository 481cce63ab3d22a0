package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// backedUpDB returns the Database of the tests with a backup at 03:00 in Berlin.
func backedUpDB() *v1.Database {
	db, yes := ordersDB(), true
	db.Spec.BackupEnabled = &yes
	db.Spec.Backup = v1.Backup{Schedule: "0 3 * * *", TimeZone: "Europe/Berlin"}
	return db
}

// createBackedUp starts the operator and creates a Database with backups.
func createBackedUp(w *einmaltest.World) *modelNode {
	n := start(w)
	w.Create(backedUpDB())
	w.Advance(10 * time.Minute)
	return n
}

// expectHealth compares the condition BackupHealthy, and what its message begins with.
func expectHealth(w *einmaltest.World, want, message string) {
	w.Helper()
	expect(w, "BackupHealthy="+want)
	db := ordersDB()
	w.Get(db)
	for _, one := range db.Status.Conditions {
		if one.Type == v1.ConditionBackupHealthy && !strings.HasPrefix(one.Message, message) {
			w.Errorf("the message is %q, want it to begin with %q", one.Message, message)
		}
	}
}

// lastSuccess describes the last backup of the status.
func lastSuccess(w *einmaltest.World) string {
	w.Helper()
	db := ordersDB()
	w.Get(db)
	if db.Status.Backup == nil || db.Status.Backup.LastSuccess == nil {
		return ""
	}
	last := db.Status.Backup.LastSuccess
	return fmt.Sprintf("%s %s %s %s", last.Job, last.Location, last.Size, last.Source)
}

func TestABackupIsInTheStatus(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := createBackedUp(w)
		expectHealth(w, "False NoBackup", "no backup has been made yet; the schedule is 0 3 * * * Europe/Berlin")
		cron := &batchv1.CronJob{ObjectMeta: in("orders-db-backup")}
		if !w.Get(cron) || cron.Spec.Schedule != "0 3 * * *" || *cron.Spec.TimeZone != "Europe/Berlin" {
			w.Errorf("the CronJob is %+v", cron.Spec)
		}
		n.schedule("orders-db-backup-1")
		begun := time.Now().UTC()
		w.Advance(10 * time.Minute)
		expectHealth(w, "True BackupRecent", "")
		name := begun.Format("20060102T150405Z")
		if got, want := lastSuccess(w), "orders-db-backup-1 orders-db-backup/"+name+" 1Mi standby"; got != want {
			w.Errorf("the last backup is %q, want %q", got, want)
		}
		expectQuiet(w)
	})
}

// expectMetrics compares the metrics of backups.
func expectMetrics(w *einmaltest.World, n *modelNode, want map[string]float64) {
	w.Helper()
	families, err := n.registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			got[family.GetName()] = one.GetGauge().GetValue()
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("metrics (-want +got):\n%s", diff)
	}
}

// The metrics have the last backup, also of a new process, and end with the Database.
func TestMetricsHaveTheLastBackup(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := createBackedUp(w)
		expectMetrics(w, n, map[string]float64{})
		n.schedule("orders-db-backup-1")
		want := map[string]float64{"database_backup_timestamp_seconds": float64(time.Now().Unix()), "database_backup_size_bytes": 1 << 20}
		w.Advance(10 * time.Minute)
		expectMetrics(w, n, want)
		w.Kill()
		w.Restart()
		w.Advance(time.Minute)
		expectMetrics(w, n, want)
		w.Delete(ordersDB())
		w.Advance(10 * time.Minute)
		expectMetrics(w, n, map[string]float64{})
	})
}

// A claim that is lost has lost its backups.
func TestBackupsThatAreLostDoNotCount(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := createBackedUp(w)
		n.schedule("orders-db-backup-1")
		w.Advance(10 * time.Minute)
		expectHealth(w, "True BackupRecent", "")
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: in("orders-db-backup")}
		w.Delete(claim)
		w.Advance(10 * time.Second)
		expectHealth(w, "False NoBackup", "")
		if !w.Get(claim) {
			w.Errorf("there is no claim for backups")
		}
		expectQuiet(w)
		n.schedule("orders-db-backup-2")
		w.Advance(10 * time.Minute)
		expectHealth(w, "True BackupRecent", "")
	})
}

// The operator says by itself when two periods have passed, also after a change of the clock in spring.
// The periods are hours, since a virtual day with a probe each ten seconds takes real seconds. They begin at half past, in UTC.
func TestABackupThatIsOlderThanTwoPeriodsIsOutdated(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := start(w)
		db := backedUpDB()
		db.Spec.Backup = v1.Backup{Schedule: "0 * * * *", TimeZone: "Asia/Kolkata"}
		w.Create(db)
		w.Advance(10 * time.Minute)
		n.schedule("orders-db-backup-1")
		w.Advance(10 * time.Minute)
		due := time.Now().UTC().Truncate(time.Hour).Add(30 * time.Minute)
		if !due.After(time.Now()) {
			due = due.Add(time.Hour)
		}
		w.Advance(time.Until(due.Add(time.Hour)) - time.Minute)
		expectHealth(w, "True BackupRecent", "")
		w.Advance(2 * time.Minute)
		expectHealth(w, "False BackupOutdated", "the last backup began at ")
		n.schedule("orders-db-backup-2")
		w.Advance(10 * time.Minute)
		expectHealth(w, "True BackupRecent", "")
	})
}

func TestABackupThatFailsIsSaid(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := createBackedUp(w)
		n.backups.failure = "BackupFailed: pg_dump: error: no space left on device"
		n.schedule("orders-db-backup-1")
		w.Advance(10 * time.Minute)
		expectHealth(w, "False BackupFailed", "the Job orders-db-backup-1: "+n.backups.failure)
		expect(w, "Ready=True DatabaseReady", "Degraded=False AsExpected")
		expectEvents(w, "BackupFailed", 1)
		n.backups.failure = ""
		n.schedule("orders-db-backup-2")
		w.Advance(10 * time.Minute)
		expectHealth(w, "True BackupRecent", "")
		db := ordersDB()
		w.Get(db)
		if db.Status.Backup.LastFailure.Job != "orders-db-backup-1" {
			w.Errorf("the last failure is %+v", db.Status.Backup.LastFailure)
		}
	})
}

func TestABackupThatDoesNotStartIsSaid(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := createBackedUp(w)
		n.backups.pending = `{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"no node has room"}]}`
		n.schedule("orders-db-backup-1")
		w.Advance(10 * time.Minute)
		expectHealth(w, "False Unschedulable", "the Pod orders-db-backup-1-x waits for a node: no node has room")
	})
}

// A backup counts also if its Pod is gone, and so what it has said.
func TestABackupWhosePodIsGoneCounts(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := createBackedUp(w)
		n.backups.lost = true
		n.schedule("orders-db-backup-1")
		w.Advance(10 * time.Minute)
		expectHealth(w, "True BackupRecent", "")
		if got, want := lastSuccess(w), "orders-db-backup-1  <nil> "; got != want {
			w.Errorf("the last backup is %q, want %q", got, want)
		}
	})
}

// The CronJob comes and goes with the field. The backups stay.
func TestBackupsAreSwitchedOffAndOn(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		createBackedUp(w)
		cron, claim := &batchv1.CronJob{ObjectMeta: in("orders-db-backup")}, &corev1.PersistentVolumeClaim{ObjectMeta: in("orders-db-backup")}
		w.Get(claim)
		before := claim.UID
		w.Patch(ordersDB(), `{"spec":{"backupEnabled":false}}`)
		w.Advance(time.Minute)
		expectHealth(w, "False Disabled", "")
		if w.Get(cron) {
			w.Errorf("there is a CronJob")
		}
		w.Patch(ordersDB(), `{"spec":{"backupEnabled":true,"backup":{"schedule":"@hourly"}}}`)
		w.Advance(time.Minute)
		if !w.Get(cron) || cron.Spec.Schedule != "@hourly" {
			w.Errorf("the CronJob is %+v", cron.Spec)
		}
		w.Delete(cron)
		w.Advance(time.Minute)
		if !w.Get(cron) || !w.Get(claim) || claim.UID != before {
			w.Errorf("a CronJob that was deleted is not made again, or the claim is another one")
		}
	})
}

func TestTheVolumeOfBackupsGrows(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		createBackedUp(w)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: in("orders-db-backup")}
		for _, size := range []string{"1Gi", "3Gi"} {
			if w.Get(claim); claim.Spec.Resources.Requests.Storage().String() != size {
				w.Errorf("the claim requests %s, want %s", claim.Spec.Resources.Requests.Storage(), size)
			}
			w.Patch(ordersDB(), `{"spec":{"backup":{"claim":{"storage":"3Gi"}}}}`)
			w.Advance(time.Minute)
		}
	})
}

func TestAScheduleThatMakesNoSenseIsSaid(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		createBackedUp(w)
		for _, wrong := range []struct{ schedule, zone, want string }{
			{"every day", "Etc/UTC", `spec.backup.schedule: "every day" is not a schedule; write five fields as of cron`},
			{"TZ=UTC 0 3 * * *", "Etc/UTC", `spec.backup.schedule: "TZ=UTC 0 3 * * *" is not a schedule`},
			{"@daily", "Mars/Phobos", `spec.backup.timeZone: there is no time zone "Mars/Phobos"`},
		} {
			w.Patch(ordersDB(), fmt.Sprintf(`{"spec":{"backup":{"schedule":%q,"timeZone":%q}}}`, wrong.schedule, wrong.zone))
			w.Advance(time.Minute)
			expectHealth(w, "False ScheduleInvalid", wrong.want)
			expect(w, "Ready=True DatabaseReady")
		}
	})
}

// A claim of another app is not used for backups, and the database goes on.
func TestAClaimOfOthersIsNotUsedForBackups(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		start(w)
		w.AllowUnfinished("back-up")
		db := ordersDB()
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: in("orders-db-backup"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: db.Spec.Storage}},
		}}
		w.Create(claim, backedUpDB())
		w.Advance(10 * time.Minute)
		expectHealth(w, "False ObjectRefused", "the PersistentVolumeClaim orders-db-backup exists and does not belong to this Database")
		expect(w, "Ready=True DatabaseReady")
	})
}

// expectEvents expects so many different events with a reason.
func expectEvents(w *einmaltest.World, reason string, want int) {
	w.Helper()
	events := &eventsv1.EventList{}
	if err := w.Client().List(w.Context(), events); err != nil {
		w.Fatal(err)
	}
	if got := slices.DeleteFunc(events.Items, func(one eventsv1.Event) bool { return one.Reason != reason }); len(got) != want {
		w.Errorf("%d events have the reason %s, want %d: %v", len(got), reason, want, got)
	}
}

// requestBackup asks for a backup now.
func requestBackup(w *einmaltest.World, request string) {
	w.Patch(ordersDB(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, backupAnnotation, request))
}

// A request makes one backup: not another one when its Job is deleted, when the operator restarts, or when the object is applied again.
func TestARequestMakesOneBackup(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := start(w)
		n.backups.made = map[string]int{}
		db := backedUpDB()
		db.Annotations = map[string]string{backupAnnotation: "before-release-7"}
		w.Create(db)
		w.Advance(10 * time.Minute)
		if got := lastSuccess(w); !strings.HasPrefix(got, "orders-db-backup-before-release-7 ") {
			w.Errorf("the last backup is %q", got)
		}
		w.Delete(&batchv1.Job{ObjectMeta: in("orders-db-backup-before-release-7")})
		w.Kill()
		w.Restart()
		requestBackup(w, "before-release-7")
		w.Advance(time.Hour)
		requestBackup(w, "before-release-8")
		w.Advance(10 * time.Minute)
		if got := fmt.Sprint(n.backups.made); got != "map[orders-db-backup-before-release-7:1 orders-db-backup-before-release-8:1]" {
			w.Errorf("backups were made by %s", got)
		}
	})
}

func TestARequestThatCannotBeIsRefused(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		createBackedUp(w)
		requestBackup(w, "Before Release 7")
		w.Advance(time.Minute)
		expectEvents(w, "BackupRefused", 1)
		foreign := &batchv1.Job{ObjectMeta: in("orders-db-backup-x"), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}}}
		w.Create(foreign)
		requestBackup(w, "x")
		w.Advance(time.Minute)
		expectEvents(w, "BackupRefused", 2)
		w.Patch(ordersDB(), `{"spec":{"backupEnabled":false}}`)
		requestBackup(w, "y")
		w.Advance(time.Minute)
		expectEvents(w, "BackupRefused", 3)
		w.Get(foreign)
		if metav1.GetControllerOf(foreign) != nil || w.Get(&batchv1.Job{ObjectMeta: in("orders-db-backup-y")}) {
			w.Errorf("a backup was made")
		}
	})
}

// The claim of the backups has no owner. So it has no label by which a tool finds the objects that it manages, and one of an earlier operator loses them once.
func TestNoToolTakesTheClaimOfBackupsForItsOwn(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := start(w)
		claim := manifest.BackupClaim(backedUpDB())
		claim.Namespace = ordersDB().Namespace
		claim.Labels["app.kubernetes.io/instance"], claim.Labels["app.kubernetes.io/managed-by"] = "orders-db", "databases.einmal.dev"
		claim.Labels["team"] = "shop"
		w.Create(claim)
		w.Create(backedUpDB())
		w.Advance(10 * time.Minute)
		checkReady(w, n)
		w.Get(claim)
		if diff := cmp.Diff(map[string]string{manifest.BackupOfLabel: "orders-db", "team": "shop"}, claim.Labels); diff != "" {
			w.Errorf("the labels of the claim (-want +got):\n%s", diff)
		}
		version := claim.ResourceVersion
		w.Restart()
		w.Advance(time.Hour)
		if w.Get(claim); claim.ResourceVersion != version {
			w.Errorf("the claim is written again")
		}
		other := manifest.BackupClaim(backedUpDB())
		for key := range other.Labels {
			if einmal.IsTrackingLabel(key) {
				w.Errorf("a new claim has the label %s", key)
			}
		}
	})
}
