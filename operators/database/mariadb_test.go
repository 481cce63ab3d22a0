package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// ordersMariaDB returns the Database of the tests with engine mariadb.
func ordersMariaDB() *v1.Database {
	db := ordersDB()
	db.Spec.Engine, db.Spec.Version = v1.MariaDB, "10.11"
	return db
}

// createMariaDB starts the operator and creates a Database with engine mariadb.
func createMariaDB(w *einmaltest.World) *modelNode {
	n := start(w)
	w.Create(ordersMariaDB())
	w.Advance(10 * time.Minute)
	return n
}

func TestAMariaDBIsReadyAndKeepsItsPassword(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := createMariaDB(w)
		checkReady(w, n)
		expect(w, "EngineSupported=True Supported", "VersionSupported=True Supported", "ParametersApplied=True Applied", "StandbysStreaming=unset", "PrimaryAsRequested=unset")
		db := ordersDB()
		w.Get(db)
		got := []string{string(db.Status.Engine), db.Status.DataVersion, db.Status.Image, db.Status.Endpoint, db.Status.ReadOnlyEndpoint}
		if diff := cmp.Diff([]string{"mariadb", "10.11", "mariadb:10.11", "orders-db-rw.default.svc:3306", ""}, got); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		for _, unneeded := range []client.Object{&corev1.Service{ObjectMeta: in("orders-db-ro")}, &corev1.Secret{ObjectMeta: in("orders-db-replication")}} {
			if w.Get(unneeded) {
				t.Errorf("there is %T %s", unneeded, unneeded.GetName())
			}
		}
		w.Delete(&corev1.Pod{ObjectMeta: in("orders-db-0")})
		w.Delete(&appsv1.StatefulSet{ObjectMeta: in("orders-db")})
		w.Advance(10 * time.Minute)
		checkReady(w, n)
		expectQuiet(w)
	})
}

// MariaDB reads its parameters only when it starts.
func TestAChangedParameterRestartsAMariaDBOnce(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := createMariaDB(w)
		w.Patch(ordersDB(), `{"spec":{"parameters":{"max_connections":"50"}}}`)
		w.Advance(10 * time.Minute)
		checkReady(w, n)
		expect(w, "ParametersApplied=True Applied", "Progressing=False Complete")
		if got := n.servers["orders-db-0"].connections; got != 50 {
			t.Errorf("the server accepts %d connections, want 50", got)
		}
		w.Patch(ordersDB(), `{"spec":{"parameters":{"work_mem":"64MB"}}}`)
		w.Advance(10 * time.Minute)
		expect(w, "ParametersApplied=False Invalid")
		w.Patch(ordersDB(), `{"spec":{"parameters":{"work_mem":null}}}`)
		w.Advance(10 * time.Minute)
		said := restarts(w)
		if len(said) != 1 || !strings.Contains(said[0], "changed parameters of the spec need") {
			t.Errorf("the events are %q", said)
		}
		checkReady(w, n)
		expectQuiet(w)
	})
}

// A MariaDB that an earlier operator has started, which identified its configuration in another way, is not restarted.
func TestAnUpgradeOfTheOperatorRestartsNoMariaDB(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := createMariaDB(w)
		db := ordersDB()
		w.Get(db)
		server := n.servers["orders-db-0"]
		earlier := manifest.EarlierConfiguration(db, manifest.Defaults(db))
		if server.loaded == earlier {
			t.Error("settings of the operator count")
		}
		server.loaded = earlier
		w.Kill()
		w.Restart()
		w.Advance(10 * time.Minute)
		checkReady(w, n)
		if said := restarts(w); len(said) > 0 {
			t.Errorf("it was restarted: %q", said)
		}
		w.Patch(ordersDB(), `{"spec":{"parameters":{"max_connections":"50"}}}`)
		w.Advance(10 * time.Minute)
		if said := restarts(w); len(said) != 1 {
			t.Errorf("the events are %q", said)
		}
		checkReady(w, n)
	})
}

// lifeOfAMariaDB ends with the deletion of everything.
func lifeOfAMariaDB(w *einmaltest.World) {
	n := createMariaDB(w)
	requestBackup(w, "now")
	w.Patch(ordersDB(), `{"spec":{"deletionPolicy":"Delete","storage":"2Gi","parameters":{"max_connections":"50"}}}`)
	w.Advance(20 * time.Minute)
	checkReady(w, n)
	expect(w, "BackupHealthy=True BackupRecent", "ParametersApplied=True Applied")
	w.Outcome("connections", n.servers["orders-db-0"].connections)
	w.Patch(ordersDB(), `{"spec":{"backupEnabled":false}}`)
	w.Advance(time.Minute)
	w.Delete(ordersDB())
	w.Advance(20 * time.Minute)
	checkErased(w)
}

func TestNothingIsLeftOfAMariaDB(t *testing.T) { einmaltest.Run(t, lifeOfAMariaDB) }

// Whatever goes wrong, nothing is left of a database with engine mariadb that is to be deleted with its data.
func TestNothingIsLeftOfAMariaDBWhateverGoesWrong(t *testing.T) {
	einmaltest.Explore(t, lifeOfAMariaDB, einmaltest.Schedules(0), withTheOperator())
}

// A Database with the name of a deleted one takes up its volume, but not with another engine.
func TestAMariaDBDoesNotTouchDataOfPostgreSQL(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		w.Delete(ordersDB())
		w.Advance(10 * time.Minute)
		w.Create(ordersMariaDB())
		w.Advance(10 * time.Minute)
		expect(w, "Ready=False VersionNotSupported", "VersionSupported=False DataOfAnotherEngine")
		if w.Get(&appsv1.StatefulSet{ObjectMeta: in("orders-db")}) {
			t.Error("it has got a StatefulSet")
		}
		w.Delete(ordersDB())
		w.Advance(10 * time.Minute)
		w.Create(ordersDB())
		w.Advance(10 * time.Minute)
		checkReady(w, n)
	})
}

// A backup of MariaDB becomes another database.
func TestAMariaDBIsRestored(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := start(w)
		db := ordersMariaDB()
		db.Spec.Bootstrap = restoredDB().Spec.Bootstrap
		w.Create(db)
		w.Advance(10 * time.Minute)
		checkReady(w, n)
		w.Get(db)
		if db.Status.RestoredFrom == "" {
			t.Error("the status does not say which backup the database began with")
		}
	})
}
