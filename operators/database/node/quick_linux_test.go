package node

import (
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// An app logs in to a database on a real node. It keeps its data and its password when its Pod and its Secrets are lost. A standby has the same data, and
// becomes the primary and a standby again. A backup becomes another database. The servers do what the simulation assumes.
func TestADatabaseRunsOnARealNode(t *testing.T) {
	t.Setenv("EINMAL_POSTGRES_VERSIONS", "15")
	s := &started{realnode.Start(t, script, ready)}
	s.connect(t, "15")
	s.losesItsPassword(t)
	s.awaitServers(t, "Ready Streaming")
	s.awaitReading(t, "select n, pg_is_in_recovery() from kept", "42|t")
	// No standby can execute a serializable transaction. The sessions of the operator have their own settings.
	s.change(t, "orders-db", `{"parameters":{"default_transaction_isolation":"serializable"}}`)
	s.awaitSQL(t, "show default_transaction_isolation", "serializable")
	s.switchesOver(t, 2, func(int) {})
	// A restore also has the index that needs the search_path of the app, and the settings of its role.
	s.awaitSQL(t, "create function one() returns int language sql immutable as 'select 1'; create function two() returns int language sql immutable as 'select one() + one()'; "+
		"create index on kept ((n + two())); alter role app set work_mem = '9MB'", "")
	s.isRestored(t, "15", "kept")
	s.inPod(t, "copy", "select setconfig from pg_db_role_setting join pg_indexes on tablename = 'kept' where setrole = 'app'::regrole", "{work_mem=9MB}")
	s.await(t, "database", "copy", `.status.conditions[?(@.type=="RestoreComplete")].reason`, "Complete")
	s.fulfilsTheContract(t)
}
