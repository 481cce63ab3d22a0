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
	t.Run("a person says that the node is off", func(t *testing.T) { s.isReplaced(t, "Ready Streaming") })
	t.Run("the node is lost during a switchover", func(t *testing.T) {
		s.isReplaced(t, "Ready Streaming", func() {
			s.change(t, "orders-db", `{"primary":1}`)
			s.await(t, "database", "orders-db", ".status.switchover.phase", "Stopping")
		})
		s.await(t, "database", "orders-db", `.status.conditions[?(@.type=="PrimaryAsRequested")].reason`, "SwitchoverFailed")
	})
}

// isReplaced loses the node, and runs the command that the status says. Kubernetes makes other Pods, which run when the node is back.
func (s *started) isReplaced(t *testing.T, want string, meanwhile ...func()) {
	t.Helper()
	before := s.uid(t, "pod", "orders-db-0")
	thaw := s.FreezeKubelet(t)
	for _, do := range meanwhile {
		do()
	}
	s.Kill(t, "postgres", "-D", "/data/pgdata")
	message := s.awaitLoss(t)
	_, command, _ := strings.Cut(message, ": kubectl ")
	s.MustKubectl(t, strings.Fields(command)...)
	if len(meanwhile) == 0 { // The Pod of a switchover stays until the operator has seen it, and the operator is on this node.
		s.awaitNew(t, "pod", "orders-db-0", before)
	}
	thaw()
	s.MustKubectl(t, "taint", "nodes", "devcluster", "node.kubernetes.io/out-of-service-")
	s.awaitNew(t, "pod", "orders-db-0", before)
	s.awaitServers(t, want)
	s.inServer(t, 0, "select n from kept", "42") // The client was deleted too.
}

// awaitLoss waits until the status says that the node of the primary is lost, and returns what it says.
func (s *started) awaitLoss(t *testing.T) string {
	t.Helper()
	s.MustKubectl(t, "wait", "node", "devcluster", "--for=condition=Ready=Unknown", "--timeout=5m")
	s.awaitReason(t, "orders-db", "PrimaryNodeLost")
	message, err := s.field(t.Context(), "database", "orders-db", `.status.conditions[?(@.type=="Ready")].message`)
	if err != nil {
		t.Fatal(err)
	}
	return message
}
