package node

import (
	"strings"
	"testing"

	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// The only node stops to answer. The status says so, with a command that lets Kubernetes start the Pods elsewhere. Nothing becomes the primary by itself, and
// when the node is back, so is the database, with its data. This is also so in the middle of a switchover.
func TestNodeThatIsLostIsSaid(t *testing.T) {
	s := &started{realnode.Start(t, script, ready)}
	s.connect(t, "16")
	s.awaitServers(t, "Ready Streaming")

	t.Run("the node is back by itself", func(t *testing.T) {
		before := s.uid(t, "pod", "orders-db-0")
		thaw := s.FreezeKubelet(t)
		s.Kill(t, "postgres", "-D", "/data/pgdata")
		s.awaitLoss(t)
		thaw()
		s.awaitServers(t, "Ready Streaming")
		s.awaitSQL(t, "select n from kept", "42")
		if now := s.uid(t, "pod", "orders-db-0"); now != before {
			t.Error("the Pod was replaced")
		}
	})
	t.Run("a person says that the node is off", func(t *testing.T) { s.isReplaced(t) })
	t.Run("the node is lost during a switchover", func(t *testing.T) {
		s.isReplaced(t, func() {
			s.change(t, "orders-db", `{"primary":1}`)
			s.await(t, "database", "orders-db", ".status.switchover.phase", "Stopping")
		})
		s.await(t, "database", "orders-db", `.status.conditions[?(@.type=="PrimaryAsRequested")].reason`, "SwitchoverFailed")
	})
	t.Run("the volume is lost", s.losesItsVolume)
}

// A primary that cannot start is given up. The only standby that runs lacks a row, but becomes the primary. The other servers have the row, and copy the
// database.
func TestNodeFailsOverWhenAPersonSaysSo(t *testing.T) {
	s := &started{realnode.Start(t, script, ready)}
	s.connect(t, "16")
	s.awaitServers(t, "Ready Streaming")
	s.MustKubectl(t, "scale", "--namespace", "production", "database/orders-db", "--replicas=3")
	s.awaitServers(t, "Ready Streaming Streaming")
	s.inServer(t, 1, "select n from kept", "42")
	s.route(t, "add")
	s.awaitServers(t, "Ready Disconnected Streaming")
	s.add(t, "43")
	s.inServer(t, 2, "select n from kept where n = 43", "43")
	s.MustKubectl(t, "cordon", "devcluster")
	s.remove(t, "pod", "orders-db-2")
	s.remove(t, "pod", "orders-db-0")
	s.awaitReason(t, "orders-db", "Unschedulable")
	s.obey(t, "annotate ")
	s.await(t, "database", "orders-db", ".status.primary.pod", "orders-db-1")
	s.awaitReason(t, "orders-db", "DatabaseReady")
	s.add(t, "44")
	s.MustKubectl(t, "uncordon", "devcluster")
	s.awaitServers(t, "Streaming Ready Streaming")
	s.route(t, "del")
	for ordinal := range 3 {
		s.inServer(t, ordinal, "select string_agg(n::text, ',' order by n) from kept", "42,44")
	}
	log := s.MustKubectl(t, "logs", "--namespace", "production", "orders-db-0", "--container", "data")
	if !strings.Contains(log, "has written what the current primary does not have") {
		t.Errorf("the log of the former primary: %s", log)
	}
}

// add adds a row, once.
func (s *started) add(t *testing.T, n string) {
	t.Helper()
	s.awaitSQL(t, "with added as (insert into kept select "+n+", 'app' where not exists (select from kept where n = "+n+")) select "+n, n)
}

// isReplaced loses the node, and runs the command that the status says. Kubernetes makes other Pods, which run when the node is back.
func (s *started) isReplaced(t *testing.T, meanwhile ...func()) {
	t.Helper()
	before := s.uid(t, "pod", "orders-db-0")
	thaw := s.FreezeKubelet(t)
	for _, do := range meanwhile {
		do()
	}
	s.Kill(t, "postgres", "-D", "/data/pgdata")
	s.awaitLoss(t)
	s.obey(t, "taint ")
	if len(meanwhile) == 0 { // The Pod of a switchover stays until the operator has seen it, and the operator is on this node.
		s.awaitNew(t, "pod", "orders-db-0", before)
	}
	thaw()
	s.MustKubectl(t, "taint", "nodes", "devcluster", "node.kubernetes.io/out-of-service-")
	s.awaitNew(t, "pod", "orders-db-0", before)
	s.awaitServers(t, "Ready Streaming")
	s.inServer(t, 0, "select n from kept", "42") // The client was deleted too.
}

// awaitLoss waits until the status says that the node of the primary is lost.
func (s *started) awaitLoss(t *testing.T) {
	t.Helper()
	s.MustKubectl(t, "wait", "node", "devcluster", "--for=condition=Ready=Unknown", "--timeout=5m")
	s.awaitReason(t, "orders-db", "PrimaryNodeLost")
}

// obey runs the command of kubectl that the status says and that begins with a word.
func (s *started) obey(t *testing.T, word string) {
	t.Helper()
	message, err := s.field(t.Context(), "database", "orders-db", `.status.conditions[?(@.type=="Ready")].message`)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, said := strings.Cut(message, ": kubectl "+word)
	if !said {
		t.Fatalf("no command of kubectl begins with %s: %s", word, message)
	}
	command, _, _ := strings.Cut(rest, ";")
	s.MustKubectl(t, strings.Fields(word+command)...)
}

// losesItsVolume loses the volume of the primary. The standby has the data, and becomes the primary when a person says so.
func (s *started) losesItsVolume(t *testing.T) {
	s.inServer(t, 1, "select n from kept", "42")
	s.MustKubectl(t, "delete", "persistentvolumeclaim", "--namespace", "production", "data-orders-db-0", "--wait=false")
	s.remove(t, "pod", "orders-db-0")
	s.awaitReason(t, "orders-db", "DataMissing")
	s.obey(t, "annotate ")
	s.awaitServers(t, "Streaming Ready")
	s.awaitReason(t, "orders-db", "DatabaseReady")
	s.inServer(t, 0, "select n, pg_is_in_recovery() from kept", "42|t")
	s.inServer(t, 1, "select n, pg_is_in_recovery() from kept", "42|f")
	s.await(t, "database", "orders-db", `.metadata.annotations.database\.einmal\.dev/failover-from`, "")
}
