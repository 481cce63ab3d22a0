package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// disturbed is a database that is created, grows, loses its Pod and is erased, and whose operator is killed meanwhile.
const disturbed = `{"apiVersion":"database.einmal.dev/v1","kind":"Database","metadata":{"namespace":"production","name":"disturbed"},
	"spec":{"engine":"postgresql","version":"16","storage":"300Mi","deletionPolicy":"Delete"}}`

// Whenever the operator is killed, twenty times, the next one continues: each database is created once, keeps its data, and is erased wholly.
func TestNodeKeepsDatabasesWhoseOperatorIsKilled(t *testing.T) {
	s := &started{realnode.Start(t, script, ready)}
	file := s.write(t, disturbed)
	for round := range 5 {
		s.MustKubectl(t, "apply", "--filename", file)
		s.killOperator(t, 8*time.Second)
		s.awaitReason(t, "disturbed", "DatabaseReady")
		s.inPod(t, "disturbed", "create table if not exists kept as select 42 as n", "")

		s.MustKubectl(t, "patch", "database", "--namespace", "production", "disturbed", "--type", "merge", "--patch", `{"spec":{"storage":"400Mi"}}`)
		s.killOperator(t, 3*time.Second)
		s.await(t, "database", "disturbed", ".status.storage.actual", "400Mi")
		s.await(t, "statefulset", "disturbed", ".spec.volumeClaimTemplates[0].spec.resources.requests.storage", "400Mi")
		s.awaitReason(t, "disturbed", "DatabaseReady")

		s.remove(t, "pod", "disturbed-0")
		s.killOperator(t, 5*time.Second)
		s.inPod(t, "disturbed", "select n from kept", "42")

		s.MustKubectl(t, "delete", "database", "--namespace", "production", "disturbed", "--wait=false")
		s.killOperator(t, 5*time.Second)
		s.awaitNone(t, "databases,statefulsets,pods,persistentvolumeclaims,secrets,services,configmaps,networkpolicies")
		t.Logf("round %d", round)
	}
	s.awaitReason(t, "orders-db", "DatabaseReady")
}

// killOperator kills the operator after a random time. Another Pod replaces its Pod, so that the kubelet does not wait longer after each kill.
func (s *started) killOperator(t *testing.T, within time.Duration) {
	t.Helper()
	after := rand.N(within)
	t.Logf("killing the operator after %s", after)
	select {
	case <-time.After(after):
	case <-t.Context().Done():
	}
	s.MustKubectl(t, "delete", "pod", "--namespace", "database-system", "--selector", "app.kubernetes.io/name=database", "--force", "--grace-period=0")
}

// inPod waits until a statement has a result in the Pod of a database.
func (s *started) inPod(t *testing.T, database, statement, want string) {
	t.Helper()
	awaitOutput(t, fmt.Sprintf("%s returns %s in %s", statement, want, database),
		s.kubectl("exec", database+"-0", "--", "psql", "-qAtc", statement, "app"), is(want))
}

// awaitNone waits until nothing is left of the disturbed database.
func (s *started) awaitNone(t *testing.T, kinds string) {
	t.Helper()
	einmaltest.Eventually(t, "nothing is left of the database", func(ctx context.Context) error {
		all, err := s.Kubectl(ctx, "get", kinds, "--namespace", "production", "--output", "name")
		if err == nil && strings.Contains(all, "disturbed") {
			err = fmt.Errorf("there are %s", strings.Join(strings.Fields(all), ", "))
		}
		return err
	})
}
