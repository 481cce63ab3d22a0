package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/einmal-operators/einmal/einmaltest"
	v1 "github.com/einmal-operators/einmal/operators/database/api/v1"
	"github.com/einmal-operators/einmal/operators/database/manifest"
)

// restoredDB returns a Database that begins with a backup of another one.
func restoredDB() *v1.Database {
	db := ordersDB()
	db.Spec.Replicas = 2
	db.Spec.Bootstrap = &v1.Bootstrap{FromBackup: v1.BackupSource{Database: "shop-db", Name: "20261127T030000Z"}}
	return db
}

// A new database gets the backup before it accepts connections, and the volume of the backup is not used any more then.
func TestANewDatabaseBeginsWithABackup(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := start(w)
		w.Create(restoredDB())
		w.Advance(10 * time.Minute)
		checkReady(w, n)
		expectServers(w, "2/2, 0: Ready primary, 1: Streaming standby")
		expectEvents(w, "Restored", 1)
		db, set := ordersDB(), &appsv1.StatefulSet{ObjectMeta: in("orders-db")}
		w.Get(db)
		if got, want := db.Status.RestoredFrom, "shop-db-backup/20261127T030000Z"; got != want {
			w.Errorf("the database is restored from %q, want %q", got, want)
		}
		w.Get(set)
		if claim, _ := manifest.Restores(set.Spec.Template.Spec); claim != "" {
			w.Errorf("servers use the volume of the backup")
		}
		w.Patch(ordersDB(), `{"spec":{"bootstrap":{"fromBackup":{"name":"20261128T030000Z"}}}}`)
		w.Advance(time.Minute)
		expectQuiet(w)
		if created := n.created; created != 1 {
			w.Errorf("%d databases were created, want 1", created)
		}
	})
}

// A backup that cannot be restored leaves no database, and the status says why. With another backup, the database begins.
func TestABackupThatCannotBeRestoredIsSaid(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := start(w)
		n.damaged = "20261127T030000Z"
		w.Create(restoredDB())
		w.Advance(10 * time.Minute)
		expect(w, "Ready=False RestoreFailed", "Available=False NotReady", "Progressing=False RestoreFailed", "BackupHealthy=False WaitingForDatabase")
		db := ordersDB()
		w.Get(db)
		if ready := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionReady); !strings.HasPrefix(ready.Message, "the backup 20261127T030000Z is damaged") {
			w.Errorf("the message is %q", ready.Message)
		}
		if db.Status.DataVersion != "" || n.created > 0 {
			w.Errorf("there is a database")
		}
		w.Patch(ordersDB(), `{"spec":{"bootstrap":{"fromBackup":{"name":"20261126T030000Z"}}}}`)
		w.Advance(10 * time.Minute)
		checkReady(w, n)
		if w.Get(db); db.Status.RestoredFrom != "shop-db-backup/20261126T030000Z" {
			w.Errorf("the database is restored from %q", db.Status.RestoredFrom)
		}
	})
}

// While a backup is restored, the status says where to look.
func TestADatabaseThatIsRestoredSaysSo(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		start(w)
		w.Create(restoredDB())
		w.Advance(2 * time.Second)
		expect(w, "Ready=False Restoring", "Progressing=True Restoring")
		w.Advance(10 * time.Minute)
	})
}

// The status says for ever which parts of the backup the database does not have. It is ready nevertheless, because its rows are there.
func TestWhatCouldNotBeRestoredIsSaid(t *testing.T) {
	einmaltest.Run(t, func(w *einmaltest.World) {
		n := start(w)
		n.unrestored = "\nEXTENSION - bloom\nINDEX public item_name\n"
		w.Create(restoredDB())
		w.Advance(10 * time.Minute)
		checkReady(w, n)
		expectEvents(w, "Restored", 1)
		expectEvents(w, "RestoredIncompletely", 1)
		expect(w, "Ready=True DatabaseReady", "RestoreComplete=False PartsMissing")
		db := ordersDB()
		w.Get(db)
		const want = "the backup shop-db-backup/20261127T030000Z is restored with all rows of the app, but without: EXTENSION - bloom, INDEX public item_name; " +
			"for the errors: kubectl exec --namespace default orders-db-0 -- cat /data/restore.log"
		if got := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionRestoreComplete).Message; got != want {
			w.Errorf("the message is\n%s\nwant\n%s", got, want)
		}
		w.Patch(ordersDB(), `{"spec":{"bootstrap":null}}`)
		w.Advance(time.Minute)
		expect(w, "RestoreComplete=False PartsMissing")
	})
}

// The superuser creates the extensions that the operator names when a backup is restored. A Pod that has restored without them is replaced.
func TestTheOperatorNamesExtensionsForTheSuperuser(t *testing.T) {
	for value, want := range map[string]string{
		"postgis, vector": "postgis vector", "": "", `evil" "x`: "", "a,,b": "",
	} {
		d := &databases{}
		err := d.setExtensions(value)
		if got := strings.Join(d.extensions, " "); err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("--restore-extensions=%s: %q, %v; want %q", value, got, err, want)
		}
	}
	db := restoredDB()
	settings := manifest.Settings{Restore: &db.Spec.Bootstrap.FromBackup, Extensions: []string{"postgis", "vector"}}
	template := func(settings manifest.Settings) corev1.PodSpec {
		for _, child := range manifest.Children(db, settings) {
			if set, ok := child.(*appsv1.StatefulSet); ok {
				return set.Spec.Template.Spec
			}
		}
		t.Fatal("there is no StatefulSet")
		return corev1.PodSpec{}
	}
	if !slices.Contains(template(settings).InitContainers[0].Env, corev1.EnvVar{Name: "EXTENSIONS", Value: "postgis vector"}) {
		t.Errorf("the container that restores has %v", template(settings).InitContainers[0].Env)
	}
	without := settings
	without.Extensions = nil
	if !manifest.RestoresOtherwise(template(without), template(settings)) {
		t.Error("a Pod that restores without the extensions is not replaced")
	}
}
