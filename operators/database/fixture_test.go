package main

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// ordersDB returns the Database of the tests.
func ordersDB() *v1.Database {
	return &v1.Database{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders-db"},
		Spec: v1.DatabaseSpec{
			Engine: v1.PostgreSQL, Version: "16", Storage: resource.MustParse("1Gi"), Replicas: 1, Auth: v1.Auth{Database: "app", Username: "app"},
		},
	}
}

// unchecked are the fields that only a real API server checks: see TestNodeRunsDatabases and TestNodeKeepsBackupsInABucket.
func unchecked() []string {
	return []string{
		"StatefulSet.spec.template.spec.volumes.downwardAPI", "Pod.spec.volumes.downwardAPI",
		"StatefulSet.spec.template.spec.volumes.projected", "Pod.spec.volumes.projected", "NetworkPolicy.spec",
		"StatefulSet.spec.template.spec.topologySpreadConstraints", "Pod.spec.topologySpreadConstraints",
		"CronJob.spec.jobTemplate.spec.podFailurePolicy", "Job.spec.podFailurePolicy",
	}
}

// create starts the operator and the node, and creates a Database.
func create(w *einmaltest.World) *modelNode {
	n := start(w)
	w.Create(ordersDB())
	w.Advance(10 * time.Minute)
	return n
}

// checkReady expects that the database is ready, was created once, and has the password of the Secret.
func checkReady(w *einmaltest.World, n *modelNode) {
	w.Helper()
	db := ordersDB()
	w.Get(db)
	if !meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionReady) {
		w.Errorf("the database is not ready: %+v", db.Status.Conditions[1])
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders-db-app"}}
	w.Get(secret)
	if created := n.created; created != 1 {
		w.Errorf("%d volumes have got a database, want 1", created)
	}
	for _, volume := range n.volumes {
		if volume.passwords["app"] != string(secret.Data["password"]) {
			w.Errorf("the database and the Secret have different passwords")
		}
	}
}

// checkErased expects that nothing is left of the database.
func checkErased(w *einmaltest.World) {
	w.Helper()
	left := []client.Object{
		ordersDB(), &appsv1.StatefulSet{ObjectMeta: in("orders-db")}, &corev1.Pod{ObjectMeta: in("orders-db-0")},
		&corev1.PersistentVolumeClaim{ObjectMeta: in("data-orders-db-0")},
		&corev1.Secret{ObjectMeta: in("orders-db-app")}, &corev1.Secret{ObjectMeta: in("orders-db-app.g1")}, &corev1.Secret{ObjectMeta: in("orders-db-monitor")},
		&corev1.Pod{ObjectMeta: in("orders-db-1")}, &corev1.PersistentVolumeClaim{ObjectMeta: in("data-orders-db-1")}, &corev1.Secret{ObjectMeta: in("orders-db-replication")},
		&corev1.Secret{ObjectMeta: in("orders-db-backup")}, &corev1.PersistentVolumeClaim{ObjectMeta: in("orders-db-backup")}, &batchv1.CronJob{ObjectMeta: in("orders-db-backup")},
	}
	for _, object := range left {
		if w.Get(object) {
			w.Errorf("the %T %s is left", object, object.GetName())
		}
	}
}
