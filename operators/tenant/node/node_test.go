package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/realnode"
)

// started is a run of run.sh.
type started struct{ *realnode.Node }

// start runs run.sh until the test ends, and returns when the tenant acme is ready.
func start(t *testing.T) *started {
	t.Helper()
	return &started{realnode.Start(t, "./run.sh", "The tenant acme is ready.")}
}

// stored returns the versions of the tenant acme and of its Secrets: they change with every write.
func (s *started) stored(t *testing.T) map[string]string {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name, UID, ResourceVersion string }
		}
	}
	text := s.MustKubectl(t, "get", "secrets", "--namespace", "apps", "--output", "json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	stored := map[string]string{"tenant": s.MustKubectl(t, "get", "tenant", "acme", "--output", "jsonpath={.metadata.resourceVersion}")}
	for _, secret := range list.Items {
		if at := secret.Metadata; strings.HasPrefix(at.Name, "acme.") {
			stored[at.Name] = at.UID + " " + at.ResourceVersion
		}
	}
	return stored
}

// unchanged checks that nothing was written since before.
func (s *started) unchanged(t *testing.T, when string, before map[string]string) {
	t.Helper()
	if diff := cmp.Diff(before, s.stored(t)); diff != "" {
		t.Errorf("%s, the operator has written (-before +after):\n%s", when, diff)
	}
}

// awaitVisits waits until the app has written more visits than before into its database, and returns how many there are.
func (s *started) awaitVisits(t *testing.T, before int) int {
	t.Helper()
	visits := 0
	einmaltest.Eventually(t, "the app writes into its database", func(ctx context.Context) error {
		line, err := s.Kubectl(ctx, "logs", "--namespace", "apps", "deployment/web", "--tail=1")
		if err != nil {
			return err
		}
		if _, err = fmt.Sscanf(line, "visit %d as t_acme_web_a", &visits); err == nil && visits <= before {
			err = fmt.Errorf("there are not more than %d visits", before)
		}
		if err != nil {
			return fmt.Errorf("the app logs %q: %w", line, err)
		}
		return nil
	})
	return visits
}

// awaitLeader waits until an operator other than before acts and has looked at the tenant. It returns the name of its Lease's holder.
func (s *started) awaitLeader(t *testing.T, before string) string {
	t.Helper()
	var holder string
	einmaltest.Eventually(t, "another operator acts", func(ctx context.Context) error {
		var err error
		holder, err = s.Kubectl(ctx, "get", "lease", "tenants.einmal.dev", "--namespace", "tenant-system", "--output", "jsonpath={.spec.holderIdentity}")
		if err == nil && (holder == "" || holder == before) {
			err = fmt.Errorf("the Lease has the holder %q", holder)
		}
		if err != nil {
			return err
		}
		pod, _, _ := strings.Cut(holder, "_")
		log, err := s.Kubectl(ctx, "logs", "--namespace", "tenant-system", pod)
		if err == nil && !strings.Contains(log, `msg="watching, caught up with existing objects" kind=Tenant objects=1 handled=1`) {
			err = fmt.Errorf("%s has not looked at the tenant", pod)
		}
		return err
	})
	return holder
}

// kill kills both processes of the operator.
func (s *started) kill(t *testing.T) {
	t.Helper()
	if killed := s.Kill(t, "/usr/local/bin/tenant", "run"); killed != 2 { //nolint:mnd // The replicas of the Deployment.
		t.Fatalf("killed %d processes of the operator, want 2", killed)
	}
}

// The operator is a Deployment with two replicas under its own account. An app logs in with its Secret and the name of a Service. A rolling update and
// a kill of both replicas write nothing, and the app does not notice them. The operator goes on with its work.
func TestNodeRunsTheOperatorAsADeployment(t *testing.T) {
	s := start(t)
	visits := s.awaitVisits(t, 0)
	before, leader := s.stored(t), s.awaitLeader(t, "")

	s.MustKubectl(t, "rollout", "restart", "--namespace", "tenant-system", "deployment/tenant")
	s.MustKubectl(t, "rollout", "status", "--namespace", "tenant-system", "deployment/tenant", "--timeout=60s")
	leader = s.awaitLeader(t, leader)
	s.unchanged(t, "in a rolling update", before)
	visits = s.awaitVisits(t, visits)

	s.kill(t)
	s.awaitLeader(t, leader)
	s.unchanged(t, "after a kill", before)
	visits = s.awaitVisits(t, visits)

	s.MustKubectl(t, "apply", "--filename", "testdata/second.yaml")
	s.MustKubectl(t, "wait", "--for=condition=Ready", "--timeout=60s", "tenant/globex")
	s.unchanged(t, "with a second tenant", before)
	s.awaitVisits(t, visits)
	restarts := s.MustKubectl(t, "get", "pods", "--namespace", "apps", "--output", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	if restarts != "0" {
		t.Errorf("the app was started again %s times", restarts)
	}
}
