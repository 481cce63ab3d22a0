package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/einmal-operators/einmal/einmaltest"
)

// lifeOfADatabase is what users do with a database: they create it, delete its Pod, and let its volume grow. Other scenarios have backups.
func lifeOfADatabase(w *einmaltest.World) {
	n, db, no := start(w), ordersDB(), false
	db.Spec.BackupEnabled = &no
	w.Create(db)
	w.Advance(10 * time.Minute)
	w.Delete(&corev1.Pod{ObjectMeta: in("orders-db-0")})
	w.Advance(10 * time.Minute)
	w.Patch(ordersDB(), `{"spec":{"storage":"2Gi"}}`)
	w.Advance(20 * time.Minute)
	checkReady(w, n)
}

// lifeOfAnErasedDatabase ends with the deletion of everything. Before, the node does not answer for some time, and someone changes the password in
// the Secret, a parameter that needs a restart, and the minor version, and asks for a backup.
func lifeOfAnErasedDatabase(w *einmaltest.World) {
	n := create(w)
	n.lose("orders-db-0")
	w.Advance(time.Minute)
	n.regain("orders-db-0")
	w.Patch(&corev1.Secret{ObjectMeta: in("orders-db-app")}, `{"stringData":{"password":"another"}}`)
	w.Patch(ordersDB(), `{"spec":{"deletionPolicy":"Delete","parameters":{"max_connections":"50"}}}`)
	w.Advance(10 * time.Minute)
	requestBackup(w, "before-upgrade")
	w.Patch(ordersDB(), `{"spec":{"version":"16.4"}}`)
	w.Advance(10 * time.Minute)
	checkReady(w, n)
	expect(w, "BackupHealthy=True BackupRecent")
	w.Patch(ordersDB(), `{"spec":{"backupEnabled":false}}`)
	w.Advance(time.Minute)
	w.Outcome("connections", n.servers["orders-db-0"].connections)
	w.Outcome("image", runningIn(w).image)
	w.Delete(ordersDB())
	w.Advance(20 * time.Minute)
	checkErased(w)
}

// lifeOfStandbys removes one of two standbys and lets the volumes grow, which creates the StatefulSet again.
func lifeOfStandbys(w *einmaltest.World) {
	n := replicated(w, 3)
	w.Patch(ordersDB(), `{"spec":{"replicas":2,"storage":"2Gi"}}`)
	w.Advance(20 * time.Minute)
	checkReady(w, n)
	expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
	if len(n.slots) != 1 {
		w.Errorf("the primary has the slots %v", n.slots)
	}
}

// lifeOfAPrimary makes another server the primary, and then removes that.
func lifeOfAPrimary(w *einmaltest.World) {
	n := replicated(w, 2)
	w.Patch(ordersDB(), `{"spec":{"primary":1}}`)
	w.Advance(10 * time.Minute)
	checkReady(w, n)
	expectServers(w, "2/2, 0: Streaming standby, 1: Ready primary")
	w.Patch(ordersDB(), `{"spec":{"primary":null,"replicas":1}}`)
	w.Advance(20 * time.Minute)
	checkReady(w, n)
	expectServers(w, "1/1, 0: Ready primary")
}

// lifeOfALostPrimary loses the node of the primary, which a person gives up. Later, the node is back.
func lifeOfALostPrimary(w *einmaltest.World) {
	n := replicated(w, 2)
	n.switchOff("orders-db-0")
	w.Advance(time.Minute)
	db := ordersDB()
	w.Get(db)
	annotate(w, string(db.Status.Primary.UID))
	w.Advance(time.Minute)
	n.switchOn("orders-db-0")
	w.Advance(15 * time.Minute)
	checkReady(w, n)
	expectServers(w, "2/2, 0: Streaming standby, 1: Ready primary")
	expectNoRequest(w)
}

// lifeOfARestoredDatabase begins with a backup of another database. First, its spec names one that cannot be restored.
func lifeOfARestoredDatabase(w *einmaltest.World) {
	n := start(w)
	db := restoredDB()
	n.damaged, db.Spec.Replicas = db.Spec.Bootstrap.FromBackup.Name, 1
	w.Create(db)
	w.Advance(10 * time.Minute)
	w.Patch(ordersDB(), `{"spec":{"bootstrap":{"fromBackup":{"name":"20261126T030000Z"}}}}`)
	w.Advance(10 * time.Minute)
	checkReady(w, n)
	w.Get(db)
	w.Outcome("restored", db.Status.RestoredFrom)
}

// withTheOperator leaves out what is explored with the framework itself. TestALostStatusChangesNothing shows what a lost status does.
func withTheOperator() einmaltest.Option {
	return einmaltest.Without(einmaltest.Wipes, einmaltest.Answers, einmaltest.Outages, einmaltest.Events, einmaltest.Clocks, einmaltest.Standby)
}

// Whatever goes wrong, and whenever, there is one database in the end. It has the password that was generated first, and accepts connections.
func TestWhateverGoesWrongThereIsOneDatabase(t *testing.T) {
	einmaltest.Explore(t, lifeOfADatabase, einmaltest.Schedules(0), withTheOperator())
}

// Whatever goes wrong, nothing is left of a database that is to be deleted with its data.
func TestNothingIsLeftOfADatabaseWhateverGoesWrong(t *testing.T) {
	einmaltest.Explore(t, lifeOfAnErasedDatabase, einmaltest.Schedules(0), einmaltest.NoSpareRights(), withTheOperator())
}

// Whatever goes wrong, the standbys that the spec wants stream in the end, and the primary keeps nothing for others.
func TestStandbysStreamWhateverGoesWrong(t *testing.T) {
	einmaltest.Explore(t, lifeOfStandbys, einmaltest.Schedules(0), withTheOperator())
}

// Whatever goes wrong in switchovers, there is never a second primary, and nothing is lost that apps have written. In the end, the primary is the server that
// the spec says, or the switchover has failed and said so.
func TestThePrimaryChangesWhateverGoesWrong(t *testing.T) {
	einmaltest.Explore(t, lifeOfAPrimary, einmaltest.Schedules(0), withTheOperator())
}

// Whatever goes wrong in a failover, one server is the primary in the end, and the other one a standby.
func TestALostPrimaryIsReplacedWhateverGoesWrong(t *testing.T) {
	einmaltest.Explore(t, lifeOfALostPrimary, einmaltest.Schedules(0), withTheOperator())
}

// A status that is lost, as after a restore from a backup of manifests, changes nothing: the claim says that its volume holds a database.
func TestALostStatusChangesNothing(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		before, after := ordersDB(), ordersDB()
		w.Get(before)
		w.Kill()
		n.patchStatus(before.DeepCopy(), "null")
		w.Restart()
		w.Advance(time.Minute)
		checkReady(w, n)
		w.Get(after)
		if before.Status.DataVersion != after.Status.DataVersion || *before.Status.Primary != *after.Status.Primary {
			w.Errorf("before: %+v, after: %+v", before.Status, after.Status)
		}
	})
}

// An operator that is back cannot reach a server for some moments. It writes nothing.
func TestAnOperatorThatIsBackWritesNothing(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := create(w)
		db := ordersDB()
		w.Get(db)
		w.Kill()
		n.cut = true
		w.Restart()
		w.Advance(patience / 2)
		n.cut = false
		w.Advance(time.Minute)
		if after := ordersDB(); w.Get(after) && after.ResourceVersion != db.ResourceVersion {
			w.Errorf("the Database was written (-before +after):\n%s", cmp.Diff(db, after))
		}
	})
}

// Whatever goes wrong, a database is filled with a backup once.
func TestADatabaseIsRestoredOnceWhateverGoesWrong(t *testing.T) {
	einmaltest.Explore(t, lifeOfARestoredDatabase, einmaltest.Schedules(0), withTheOperator())
}
