package main

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// shopBucket returns the bucket of the tests.
func shopBucket() v1.Bucket {
	return v1.Bucket{Endpoint: "https://s3.example.com", Region: "eu-central-1", Bucket: "shop", Prefix: "clusters/blue", SecretName: "s3"}
}

// startInPod starts an operator that finds its own Pod.
func startInPod(t *testing.T, w *einmaltest.World) *modelNode {
	t.Helper()
	n := start(w)
	t.Setenv("POD_NAMESPACE", "default")
	t.Setenv("POD_NAME", "operator")
	w.Create(&corev1.Pod{ObjectMeta: in("operator"), Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "proxy", Image: "proxy:1"}, {Name: "database", Image: "database:7"},
	}}})
	return n
}

// createWithBucket creates a Database whose backups are copied to a bucket.
func createWithBucket(w *einmaltest.World) {
	db := backedUpDB()
	db.Spec.Backup.S3 = &v1.BackupBucket{Bucket: shopBucket()}
	w.Create(db)
	w.Advance(10 * time.Minute)
}

// environment returns the variables of a container: their values, or the Secrets that have them.
func environment(container corev1.Container) map[string]string {
	found := map[string]string{}
	for _, one := range container.Env {
		found[one.Name] = one.Value
		if from := one.ValueFrom; from != nil && from.SecretKeyRef != nil {
			found[one.Name] = from.SecretKeyRef.Name + "/" + from.SecretKeyRef.Key
		}
	}
	return found
}

// inShopBucket returns the variables of a container that uses the bucket of the tests, with others.
func inShopBucket(name string, others map[string]string) map[string]string {
	all := map[string]string{
		"S3_ENDPOINT": "https://s3.example.com", "S3_REGION": "eu-central-1", "S3_BUCKET": "shop", "S3_PREFIX": "clusters/blue/" + name,
		"S3_ACCESS_KEY": "s3/AWS_ACCESS_KEY_ID", "S3_SECRET_KEY": "s3/AWS_SECRET_ACCESS_KEY", "S3_AUTHORITY": "s3/ca.crt",
	}
	maps.Copy(all, others)
	return all
}

// A backup with a bucket is copied there by the image of the operator, and only the copy counts. It stays when the volume is lost.
func TestABackupIsCopiedToABucket(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := startInPod(t, w)
		createWithBucket(w)
		cron := &batchv1.CronJob{ObjectMeta: in("orders-db-backup")}
		w.Get(cron)
		pod := cron.Spec.JobTemplate.Spec.Template.Spec
		if len(pod.InitContainers) != 1 || pod.InitContainers[0].Image != "postgres:16" || pod.Containers[0].Image != "database:7" {
			w.Fatalf("the containers are %+v, %+v", pod.InitContainers, pod.Containers)
		}
		if diff := cmp.Diff(inShopBucket("default/orders-db", map[string]string{"KEEP_COUNT": "7"}), environment(pod.Containers[0])); diff != "" {
			w.Errorf("variables (-want +got):\n%s", diff)
		}
		n.schedule("orders-db-backup-1")
		w.Patch(ordersDB(), `{"spec":{"backup":{"s3":{"bucket":"other"}}}}`) // The Job does not get it any more.
		name := time.Now().UTC().Format("20060102T150405Z")
		w.Advance(10 * time.Minute)
		expectHealth(w, "True BackupRecent", "")
		want := "orders-db-backup-1 s3://shop/clusters/blue/default/orders-db/" + name + " 1Mi standby"
		if got := lastSuccess(w); got != want {
			w.Errorf("the last backup is %q, want %q", got, want)
		}
		w.Delete(&corev1.PersistentVolumeClaim{ObjectMeta: in("orders-db-backup")})
		w.Advance(10 * time.Minute)
		if got := lastSuccess(w); got != want {
			w.Errorf("without the volume, the last backup is %q, want %q", got, want)
		}
		w.Patch(ordersDB(), `{"spec":{"backup":{"s3":{"retention":{"days":90}}}}}`)
		w.Advance(time.Minute)
		w.Get(cron)
		if got := environment(cron.Spec.JobTemplate.Spec.Template.Spec.Containers[0]); got["KEEP_DAYS"] != "90" || got["KEEP_COUNT"] != "" {
			w.Errorf("the bucket keeps %v", got)
		}
		expectQuiet(w)
	})
}

// A backup that is not in the bucket has failed, although it is in the volume.
func TestABackupThatIsNotInTheBucketHasFailed(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := startInPod(t, w)
		createWithBucket(w)
		n.backups.failure = "BackupFailed: send s3://shop/clusters/blue/default/orders-db: access denied"
		requestBackup(w, "one")
		w.Advance(10 * time.Minute)
		expectHealth(w, "False BackupFailed", "the Job orders-db-backup-one: BackupFailed: send s3://shop/clusters/blue/default/orders-db: access denied")
		if got := lastSuccess(w); got != "" {
			w.Errorf("the last backup is %q, want none", got)
		}
	})
}

// A Secret of the bucket that does not exist is named.
func TestABackupWithoutTheSecretOfItsBucketSaysSo(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := startInPod(t, w)
		createWithBucket(w)
		n.backups.pending = `{"phase":"Pending","initContainerStatuses":[{"name":"backup","ready":true,"restartCount":0,"image":"i","imageID":"i","state":{"terminated":{"exitCode":0}}}],
			"containerStatuses":[{"name":"upload","ready":false,"restartCount":0,"image":"i","imageID":"","state":{"waiting":
				{"reason":"CreateContainerConfigError","message":"secret \"s3\" not found"}}}]}`
		requestBackup(w, "one")
		w.Advance(time.Minute)
		expectHealth(w, "False SecretNotUsable", `the container upload of the Pod orders-db-backup-one-x cannot start: secret "s3" not found`)
	})
}

// Without its own image, the operator says what to do, and the database is not affected.
func TestAnOperatorThatDoesNotKnowItsImageSaysSo(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		w.AllowUnfinished("back-up")
		n := start(w)
		createWithBucket(w)
		checkReady(w, n)
		expectHealth(w, "False ObjectRefused", "spec.backup.s3 and fromBackup.s3 need the image of the operator")
	})
}

// bucketDB returns a Database that begins with a backup of a bucket.
func bucketDB() *v1.Database {
	db, bucket := restoredDB(), shopBucket()
	db.Spec.Bootstrap.FromBackup.S3, db.Spec.Bootstrap.FromBackup.Namespace = &bucket, "prod"
	return db
}

// A backup of a bucket is fetched into the volume of the new database first.
func TestANewDatabaseBeginsWithABackupOfABucket(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := startInPod(t, w)
		n.damaged = "20261127T030000Z"
		w.Create(bucketDB())
		w.Advance(10 * time.Minute)
		set, pod := &appsv1.StatefulSet{ObjectMeta: in("orders-db")}, &corev1.Pod{ObjectMeta: in("orders-db-0")}
		w.Get(set)
		fetch := set.Spec.Template.Spec.InitContainers[0]
		want := inShopBucket("prod/shop-db", map[string]string{
			"RESTORE": "20261127T030000Z", "RESTORE_FROM": "s3://shop/clusters/blue/prod/shop-db",
		})
		if diff := cmp.Diff(want, environment(fetch)); diff != "" || fetch.Image != "database:7" {
			w.Errorf("the image is %s; variables (-want +got):\n%s", fetch.Image, diff)
		}
		replacesPod(w, pod, `{"s3":{"secretName":"other"}}`)
		replacesPod(w, pod, `{"name":"20261126T030000Z"}`)
		w.Advance(10 * time.Minute)
		checkReady(w, n)
		db := ordersDB()
		w.Get(db)
		if got, want := db.Status.RestoredFrom, "s3://shop/clusters/blue/prod/shop-db/20261126T030000Z"; got != want {
			w.Errorf("the database is restored from %q, want %q", got, want)
		}
		w.Get(set)
		if first := set.Spec.Template.Spec.InitContainers[0]; first.Name != "data" || strings.Contains(first.Image, "database:7") {
			w.Errorf("servers fetch the backup again")
		}
	})
}

// replacesPod changes the backup that a database begins with, and expects another Pod soon.
func replacesPod(w *einmaltest.World, pod *corev1.Pod, change string) {
	w.Helper()
	w.Get(pod)
	before := pod.UID
	w.Patch(ordersDB(), `{"spec":{"bootstrap":{"fromBackup":`+change+`}}}`)
	w.Advance(10 * time.Second)
	after := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if w.Get(after); after.UID == before || after.UID == types.UID("") {
		w.Errorf("after %s, the Pod is %s, before %s", change, after.UID, before)
	}
}
