package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
)

// conditions returns the conditions of the Database as "Type=Status Reason".
func conditions(w *einmaltest.World, kinds ...string) []string {
	w.Helper()
	db := ordersDB()
	if !w.Get(db) {
		w.Fatal("the Database is gone")
	}
	var found []string
	for _, kind := range kinds {
		condition := meta.FindStatusCondition(db.Status.Conditions, kind)
		if condition == nil {
			found = append(found, kind+"=unset")
			continue
		}
		found = append(found, fmt.Sprintf("%s=%s %s", kind, condition.Status, condition.Reason))
	}
	return found
}

// expect compares conditions of the Database.
func expect(w *einmaltest.World, want ...string) {
	w.Helper()
	var kinds []string
	for _, one := range want {
		kind, _, _ := strings.Cut(one, "=")
		kinds = append(kinds, kind)
	}
	if diff := cmp.Diff(want, conditions(w, kinds...)); diff != "" {
		w.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// in returns the metadata of an object of the Database.
func in(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

func TestADatabaseAtRestWritesNothing(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		checkReady(w, n)
		expectQuiet(w)
	})
}

func TestObjectsOfADatabaseAreRepaired(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		children := []client.Object{
			&corev1.ConfigMap{ObjectMeta: in("orders-db-config")}, &corev1.Service{ObjectMeta: in("orders-db-rw")}, &corev1.Service{ObjectMeta: in("orders-db-pods")},
			&networkingv1.NetworkPolicy{ObjectMeta: in("orders-db")}, &corev1.Service{ObjectMeta: in("orders-db-ro")},
			&policyv1.PodDisruptionBudget{ObjectMeta: in("orders-db")}, &appsv1.StatefulSet{ObjectMeta: in("orders-db")}, &corev1.Secret{ObjectMeta: in("orders-db-app")},
		}
		for _, child := range children {
			w.Get(child)
			before := child.GetUID()
			w.Delete(child)
			w.Advance(10 * time.Second)
			if !w.Get(child) || child.GetUID() == before {
				w.Errorf("the %T %s was not created again", child, child.GetName())
			}
		}
		w.Patch(&corev1.Service{ObjectMeta: in("orders-db-rw")}, `{"spec":{"selector":{"database.einmal.dev/name":"other"}}}`)
		w.Patch(&corev1.Pod{ObjectMeta: in("orders-db-0")}, `{"metadata":{"annotations":{"database.einmal.dev/grant":null},"labels":{"database.einmal.dev/role":null}}}`)
		w.Advance(time.Minute)
		service := &corev1.Service{ObjectMeta: in("orders-db-rw")}
		if w.Get(service); service.Spec.Selector["database.einmal.dev/name"] != "orders-db" {
			w.Errorf("the selector is %v", service.Spec.Selector)
		}
		checkReady(w, n)
	})
}

// A password that is lost is not replaced: the apps in use have it, and so has the database.
func TestALostPasswordIsNotReplaced(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		kept := make([]*corev1.Secret, 0, 6)
		for _, name := range []string{"orders-db-app.g1", "orders-db-app", "orders-db-monitor.g1", "orders-db-monitor", "orders-db-replication.g1", "orders-db-replication"} {
			secret := &corev1.Secret{ObjectMeta: in(name)}
			w.Get(secret)
			kept = append(kept, secret)
			w.Delete(secret.DeepCopy())
		}
		w.Advance(time.Hour)
		if w.Get(&corev1.Secret{ObjectMeta: in("orders-db-app")}) {
			w.Errorf("a password was generated again")
		}
		expect(w, "Ready=False CredentialsMissing", "Available=True AcceptsConnections", "Degraded=True CredentialsMissing")
		for _, secret := range kept {
			if strings.HasSuffix(secret.Name, ".g1") { // The operator makes the copies for apps.
				secret.ResourceVersion, secret.UID = "", ""
				w.Create(secret)
			}
		}
		w.Advance(time.Minute)
		checkReady(w, n)
	})
}

// A volume that is lost does not become an empty database.
func TestALostVolumeIsNotReplacedByAnEmptyDatabase(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		w.Delete(&corev1.PersistentVolumeClaim{ObjectMeta: in("data-orders-db-0")})
		w.Delete(&corev1.Pod{ObjectMeta: in("orders-db-0")})
		w.Advance(time.Hour)
		expect(w, "Ready=False DataMissing", "Available=False NotReady", "Progressing=False DataMissing")
		if created := n.created; created != 1 {
			w.Errorf("%d databases were created, want 1", created)
		}
	})
}

func TestWhatIsNotAvailableIsSaid(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		checkReady(w, n)
		expect(w, "Progressing=False Complete", "BackupHealthy=False NoBackup")
		set := &appsv1.StatefulSet{ObjectMeta: in("orders-db")}
		w.Patch(ordersDB(), `{"spec":{"version":"17","backupEnabled":false}}`)
		w.Advance(time.Minute)
		expect(w, "Ready=False VersionNotSupported", "Available=True AcceptsConnections", "VersionSupported=False DataOfAnotherVersion", "BackupHealthy=False Disabled")
		if w.Get(set); set.Spec.Template.Spec.Containers[0].Image != "postgres:16" {
			w.Errorf("the image is %s", set.Spec.Template.Spec.Containers[0].Image)
		}
	})
}

// A parameter is applied with a reload if that is enough, and with a restart if it is not. What is wrong changes nothing.
func TestParametersAreApplied(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		expect(w, "ParametersApplied=True Applied")
		pod := &corev1.Pod{ObjectMeta: in("orders-db-0")}
		w.Get(pod)
		first := pod.UID
		w.Patch(ordersDB(), `{"spec":{"parameters":{"work_mem":"64MB"}}}`)
		w.Advance(time.Second)
		expect(w, "Ready=True DatabaseReady", "ParametersApplied=False Reloading", "Progressing=True ApplyingParameters")
		w.Advance(time.Minute)
		expect(w, "ParametersApplied=True Applied", "Progressing=False Complete")
		if w.Get(pod); pod.UID != first {
			w.Errorf("a parameter that needs no restart has restarted the server")
		}
		w.Patch(ordersDB(), `{"spec":{"parameters":{"work_mem":"much"}}}`)
		w.Advance(time.Minute)
		expect(w, "Ready=False ParametersInvalid", "Available=True AcceptsConnections", "ParametersApplied=False Invalid")
		config := &corev1.ConfigMap{ObjectMeta: in("orders-db-config")}
		if w.Get(config); !strings.HasSuffix(config.Data["parameters.conf"], "MB'\nwork_mem = '64MB'\n") {
			w.Errorf("the server has got %q", config.Data["parameters.conf"])
		}
		w.Patch(ordersDB(), `{"spec":{"parameters":{"work_mem":"64MB","max_connections":"200"}}}`)
		w.Advance(2 * time.Minute)
		checkReady(w, n)
		expect(w, "ParametersApplied=True Applied", "Progressing=False Complete")
		if w.Get(pod); pod.UID == first {
			w.Errorf("a parameter that needs a restart was not applied")
		}
	})
}

// A server is not restarted with parameters that it does not accept: it would not start again.
func TestAServerIsNotRestartedWithParametersThatItRefuses(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		pod := &corev1.Pod{ObjectMeta: in("orders-db-0")}
		w.Get(pod)
		first := pod.UID
		n.refused = "wal_compression: invalid value"
		w.Patch(ordersDB(), `{"spec":{"parameters":{"wal_compression":"pglz","max_connections":"200"}}}`)
		w.Advance(10 * time.Minute)
		expect(w, "Ready=False ParametersRefused", "Available=True AcceptsConnections", "ParametersApplied=False Refused")
		if w.Get(pod); pod.UID != first {
			w.Errorf("the server was restarted")
		}
		n.refused = ""
		w.Advance(2 * time.Minute)
		checkReady(w, n)
		expect(w, "ParametersApplied=True Applied")
	})
}

// Users see each change of the state as one event.
func TestEventsTellTheLifeOfADatabase(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		n.cut = true
		w.Advance(2 * time.Minute)
		n.cut = false
		w.Advance(2 * time.Minute)
		events := &corev1.EventList{}
		if err := w.Client().List(w.Context(), events); err != nil {
			w.Fatal(err)
		}
		slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
		var reasons []string
		for _, event := range events.Items {
			reasons = append(reasons, event.Reason)
		}
		want := []string{"WaitingForPod", "Starting", "DatabaseReady", "Unreachable"} // The second DatabaseReady is counted in the first.
		if diff := cmp.Diff(want, reasons); diff != "" {
			w.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// A volume that grows needs no other server: the StatefulSet is created again, and adopts its Pod.
func TestAVolumeGrowsWithTheSamePod(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		pod, set := &corev1.Pod{ObjectMeta: in("orders-db-0")}, &appsv1.StatefulSet{ObjectMeta: in("orders-db")}
		w.Get(pod)
		uid := pod.UID
		w.Patch(ordersDB(), `{"spec":{"storage":"2Gi"}}`)
		w.Advance(time.Minute)
		checkReady(w, n)
		expect(w, "StorageResizing=False AsRequested")
		if w.Get(pod); pod.UID != uid {
			w.Errorf("the Pod was replaced")
		}
		if w.Get(set); !metav1.IsControlledBy(pod, set) {
			w.Errorf("the Pod has the owners %v", pod.OwnerReferences)
		}
		if size := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage(); size.String() != "2Gi" {
			w.Errorf("the claim template has %s", size)
		}
	})
}

// A server that has ended because its volume was full is started again when the volume has grown, and not before.
func TestAServerStartsAgainWhenItsFullVolumeHasGrown(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		pod := &corev1.Pod{ObjectMeta: in("orders-db-0")}
		w.Get(pod)
		uid := pod.UID
		n.patchStatus(pod, `{"conditions":[{"type":"Ready","status":"False"}],"containerStatuses":[{"name":"postgresql","ready":false,"restartCount":1,
			"image":"i","imageID":"i","lastState":{"terminated":{"exitCode":1,"message":"VolumeFull: 3 of 1000 MiB are free"}}}]}`)
		w.Advance(time.Hour)
		expect(w, "Ready=False VolumeFull", "Available=False NotReady", "Degraded=True VolumeFull")
		if w.Get(pod); pod.UID != uid {
			w.Errorf("the Pod was replaced before the volume has grown")
		}
		w.Patch(ordersDB(), `{"spec":{"storage":"2Gi"}}`)
		w.Advance(30 * time.Second)
		checkReady(w, n)
		if w.Get(pod); pod.UID == uid {
			w.Errorf("the server waits for the kubelet")
		}
	})
}

// With the policy Delete, nothing is left of a Database.
func TestADatabaseIsErased(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		create(w)
		w.Patch(ordersDB(), `{"spec":{"deletionPolicy":"Delete"}}`)
		w.Advance(time.Minute)
		w.Delete(ordersDB())
		w.Advance(time.Minute)
		checkErased(w)
	})
}

func TestMySQLGetsNoObjects(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		start(w)
		db := ordersDB()
		db.Spec.Engine = v1.MySQL
		w.Create(db)
		w.Advance(time.Minute)
		expect(w, "Ready=False EngineNotSupported", "EngineSupported=False NotSupported", "VersionSupported=unset", "BackupHealthy=False EngineNotSupported")
		w.Get(db)
		const want = "engine mysql is not supported; create a Database with engine mariadb, which understands most of its SQL, or postgresql"
		if got := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionEngineSupported); got.Message != want {
			w.Errorf("the message is %q, want %q", got.Message, want)
		}
		if w.Get(&appsv1.StatefulSet{ObjectMeta: in("orders-db")}) || w.Get(&corev1.Secret{ObjectMeta: in("orders-db-app")}) {
			w.Errorf("it has got objects")
		}
		if w.Get(db); db.Status.Endpoint != "" || db.Status.SecretName != "" {
			w.Errorf("the status names objects that do not exist: %s, %s", db.Status.Endpoint, db.Status.SecretName)
		}
	})
}

// A password that the server refuses is said, and the message has the remedy. Nothing is changed in the database.
func TestAPasswordThatTheServerRefusesIsSaid(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		for _, volume := range n.volumes {
			volume.passwords["app"] = "another"
		}
		w.Advance(2 * time.Minute)
		expect(w, "Ready=False PasswordRefused", "Available=True AcceptsConnections", "Degraded=True PasswordRefused")
		secret := &corev1.Secret{ObjectMeta: in("orders-db-app")}
		w.Get(secret)
		for _, volume := range n.volumes {
			volume.passwords["app"] = string(secret.Data["password"])
		}
		w.Advance(2 * time.Minute)
		checkReady(w, n)
	})
}

// Apps that use all connections that they can have are named as the cause. The operator has connections of its own, so another server can become the primary.
func TestAppsThatUseAllConnectionsHinderNoSwitchover(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := replicated(w, 2)
		n.full = true
		w.Advance(2 * time.Minute)
		expect(w, "Ready=False ConnectionsExhausted", "Available=True AcceptsConnections", "StandbysStreaming=True Streaming")
		request(w, 1)
		expectServers(w, "2/2, 0: Streaming standby, 1: Ready primary")
		n.full = false
		w.Advance(2 * time.Minute)
		checkReady(w, n)
	})
}

// A server that cannot be reached through its Service is not ready, and is probed again soon.
func TestAServerThatCannotBeReachedIsProbedAgain(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		n.cut = true
		w.Advance(2 * time.Minute)
		expect(w, "Ready=False Unreachable", "Progressing=True Unreachable")
		n.cut = false
		w.Advance(reconnect + time.Second)
		checkReady(w, n)
		before := len(w.Writes())
		n.cut = true
		w.Advance(probeInterval + patience/2)
		n.cut = false
		w.Advance(time.Minute)
		if after := w.Writes(); len(after) != before {
			w.Errorf("a brief failure was written: %v", after[before:])
		}
	})
}

// The status says when a volume is almost full. Small changes are not written.
func TestAVolumeThatIsAlmostFullIsSaid(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		n.used = 86
		w.Advance(2 * time.Minute)
		expect(w, "Ready=True DatabaseReady", "Degraded=False AsExpected")
		n.used = 90
		w.Advance(2 * time.Minute)
		expect(w, "Ready=True DatabaseReady", "Degraded=True VolumeAlmostFull")
		before := len(w.Writes())
		for _, used := range []int32{88, 91, 87, 93} {
			n.used = used
			w.Advance(2 * time.Minute)
		}
		if after := w.Writes(); len(after) != before {
			w.Errorf("the operator has written: %v", after[before:])
		}
		n.used = 85
		w.Advance(2 * time.Minute)
		expect(w, "Degraded=False AsExpected")
	})
}
