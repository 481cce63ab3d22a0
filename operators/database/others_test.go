package main

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// A Secret of another app is not used as the password. It stays when the Database is erased.
func TestObjectsOfOthersAreNotUsed(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		start(w)
		foreign := &corev1.Secret{ObjectMeta: in("orders-db-app"), Data: map[string][]byte{"password": []byte("of another app")}}
		w.Create(foreign, ordersDB())
		w.Advance(time.Minute)
		expect(w, "Ready=False CredentialsConflict")
		if w.Get(&appsv1.StatefulSet{ObjectMeta: in("orders-db")}) {
			w.Errorf("a server was started with a Secret of another app")
		}
		w.Patch(ordersDB(), `{"spec":{"deletionPolicy":"Delete"}}`)
		w.Delete(ordersDB())
		w.Advance(time.Minute)
		if w.Get(ordersDB()) || !w.Get(foreign) {
			w.Errorf("the Database is there: %t; the Secret of the other app is there: %t", w.Get(ordersDB()), w.Get(foreign))
		}
	})
}

// A server of another team that has the name of the Database stays as it is, and so do its Pod and its volume. When it is gone, the Database gets its own.
func TestAServerOfOthersStaysAsItIs(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := start(w)
		small := ordersDB()
		settings := manifest.Settings{Images: manifest.Images{Server: "other"}, Version: "16", Replicas: 1, Template: resource.MustParse("300Mi")}
		children := manifest.Children(small, settings)
		foreign := children[len(children)-1].(*appsv1.StatefulSet)
		foreign.Namespace, foreign.Spec.VolumeClaimTemplates[0].Labels = small.Namespace, nil
		w.Create(foreign)
		w.Advance(time.Minute)
		claim, pod, set := &corev1.PersistentVolumeClaim{ObjectMeta: in("data-orders-db-0")}, &corev1.Pod{ObjectMeta: in("orders-db-0")}, &appsv1.StatefulSet{ObjectMeta: in("orders-db")}
		var before []string
		for _, object := range []client.Object{set, pod, claim} {
			w.Get(object)
			before = append(before, object.GetResourceVersion())
		}
		w.Create(ordersDB())
		w.Advance(time.Hour)
		expect(w, "Ready=False ObjectRefused", "Available=False NotReady", "Progressing=False ObjectRefused")
		for i, object := range []client.Object{set, pod, claim} {
			if !w.Get(object) || object.GetResourceVersion() != before[i] {
				t.Errorf("the %T %s was changed", object, object.GetName())
			}
		}
		for _, object := range []client.Object{set, pod, claim} {
			w.Delete(object)
			w.Advance(time.Minute)
		}
		w.Advance(10 * time.Minute)
		checkReady(w, n)
	})
}

// A StatefulSet of a deleted Database is about to go. One of another operator, which can call its kind Database too, is not.
func TestTheServerOfAnotherKindOfDatabaseIsForeign(t *testing.T) {
	for version, leaving := range map[string]bool{"database.einmal.dev/v1": true, "postgresql.cnpg.io/v1": false} {
		yes := true
		set := &appsv1.StatefulSet{ObjectMeta: in("orders-db")}
		set.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: "Database", Name: "orders-db", UID: "other", Controller: &yes}}
		refuse := func(client.Object) error { return errors.New("it belongs to another") }
		seen := observed{set: set}.withoutOthers(ordersDB(), refuse)
		if seen.set != nil || seen.leaving != leaving || (seen.foreign == nil) != leaving {
			t.Errorf("%s: %+v", version, seen)
		}
	}
}

// A volume that was there before is not used, whatever it holds, until a person says that it belongs to the Database.
func TestAVolumeOfOthersIsNotUsed(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := start(w)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: in("data-orders-db-0"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}
		w.Create(claim)
		w.Advance(time.Minute)
		w.Create(ordersDB())
		w.Advance(time.Hour)
		expect(w, "Ready=False ObjectRefused", "Available=False NotReady")
		if w.Get(&appsv1.StatefulSet{ObjectMeta: in("orders-db")}) || w.Get(&corev1.Secret{ObjectMeta: in("orders-db-app")}) {
			w.Errorf("the Database has got objects")
		}
		w.Patch(claim, `{"metadata":{"labels":{"database.einmal.dev/name":"orders-db"}}}`)
		w.Advance(time.Minute)
		checkReady(w, n)
	})
}

// A Database that is created again while the server of the last one ends waits for it, and takes up its data and its password.
func TestADatabaseThatIsReplacedKeepsItsData(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		set := &appsv1.StatefulSet{ObjectMeta: in("orders-db")}
		w.Patch(set, `{"metadata":{"finalizers":["example.com/takes-long"]}}`)
		w.Delete(ordersDB())
		w.Advance(time.Millisecond) // The operator ends its part of the deletion.
		w.Create(ordersDB())
		w.Advance(time.Minute)
		expect(w, "Ready=False Stopping", "Progressing=True Stopping")
		w.Patch(set, `{"metadata":{"finalizers":null}}`)
		w.Advance(time.Minute)
		checkReady(w, n)
	})
}
