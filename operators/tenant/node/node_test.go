package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/einmaltest"
)

const (
	// startTimeout is the timeout for the start of everything, with downloads and builds that no cache has.
	startTimeout = 10 * time.Minute
	// stopTimeout is the timeout for the stop of everything.
	stopTimeout = time.Minute
)

// started is a run of run.sh.
type started struct {
	devcluster, data string
}

// start runs run.sh until the test ends, and returns when the tenant acme is ready.
func start(t *testing.T) *started {
	t.Helper()
	s := &started{devcluster: os.Getenv("EINMAL_DEVCLUSTER"), data: t.TempDir()}
	if s.devcluster == "" {
		t.Fatal("set EINMAL_DEVCLUSTER to the program devcluster, or run: make node")
	}
	script := exec.Command("./run.sh", s.data) //nolint:noctx // It is stopped below.
	script.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := script.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	script.Stderr = script.Stdout
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}), make(chan struct{})
	var log strings.Builder
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			log.WriteString(lines.Text() + "\n")
			if strings.HasPrefix(lines.Text(), "The tenant acme is ready.") {
				close(ready)
			}
		}
	}()
	t.Cleanup(func() {
		_ = script.Process.Signal(syscall.SIGTERM) // It can have ended.
		select {
		case <-ended:
		case <-time.After(stopTimeout):
			t.Errorf("run.sh did not stop within %s", stopTimeout)
			_ = syscall.Kill(-script.Process.Pid, syscall.SIGKILL) // It can have ended.
			<-ended
		}
		_ = script.Wait() // The signal is the reason.
		if t.Failed() {
			t.Logf("run.sh:\n%s", log.String())
		}
	})
	select {
	case <-ready:
	case <-ended:
		t.Fatal("run.sh ended before the tenant was ready")
	case <-time.After(startTimeout):
		t.Fatalf("the tenant was not ready after %s", startTimeout)
	}
	return s
}

// kubectl runs kubectl and returns what it printed.
func (s *started) kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.devcluster, append([]string{"kubectl", "--data", s.data}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

func (s *started) mustKubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// stored returns the versions of the tenant acme and of its Secrets: they change with every write.
func (s *started) stored(t *testing.T) map[string]string {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name, UID, ResourceVersion string }
		}
	}
	text := s.mustKubectl(t, "get", "secrets", "--namespace", "apps", "--output", "json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	stored := map[string]string{"tenant": s.mustKubectl(t, "get", "tenant", "acme", "--output", "jsonpath={.metadata.resourceVersion}")}
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
		line, err := s.kubectl(ctx, "logs", "--namespace", "apps", "deployment/web", "--tail=1")
		if err != nil {
			return err
		}
		if _, err := fmt.Sscanf(line, "visit %d as t_acme_web_a", &visits); err != nil || visits <= before {
			return fmt.Errorf("the app logs %q after %d visits: %w", line, before, err)
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
		holder, err = s.kubectl(ctx, "get", "lease", "tenants.einmal.dev", "--namespace", "tenant-system", "--output", "jsonpath={.spec.holderIdentity}")
		if err != nil || holder == "" || holder == before {
			return fmt.Errorf("the Lease has the holder %q: %w", holder, err)
		}
		pod, _, _ := strings.Cut(holder, "_")
		log, err := s.kubectl(ctx, "logs", "--namespace", "tenant-system", pod)
		if err == nil && !strings.Contains(log, `msg="watching, caught up with existing objects" kind=Tenant objects=1 handled=1`) {
			err = fmt.Errorf("%s has not looked at the tenant", pod)
		}
		return err
	})
	return holder
}

// kill kills both processes of the operator, as the kernel does when memory is short.
func (s *started) kill(t *testing.T) {
	t.Helper()
	config, err := os.ReadFile(filepath.Join(s.data, "node", "kubelet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(config), "\ncgroupRoot: /")
	group, _, _ := strings.Cut(rest, "\n")
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || string(line) != "/usr/local/bin/tenant\x00run\x00" {
			continue
		}
		groups, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cgroup"))
		if err != nil || !strings.Contains(string(groups), "/"+group+"/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
		killed++
	}
	if killed != 2 { //nolint:mnd // The replicas of the Deployment.
		t.Fatalf("killed %d processes of the operator, want 2", killed)
	}
}

// The operator is a Deployment with two replicas under its own account. An app logs in with its Secret and the name of a Service. A rolling update and
// a kill of both replicas write nothing, and the app does not notice them. The operator goes on with its work.
func TestNodeRunsTheOperatorAsADeployment(t *testing.T) {
	s := start(t)
	visits := s.awaitVisits(t, 0)
	before, leader := s.stored(t), s.awaitLeader(t, "")

	s.mustKubectl(t, "rollout", "restart", "--namespace", "tenant-system", "deployment/tenant")
	s.mustKubectl(t, "rollout", "status", "--namespace", "tenant-system", "deployment/tenant", "--timeout=60s")
	leader = s.awaitLeader(t, leader)
	s.unchanged(t, "in a rolling update", before)
	visits = s.awaitVisits(t, visits)

	s.kill(t)
	s.awaitLeader(t, leader)
	s.unchanged(t, "after a kill", before)
	visits = s.awaitVisits(t, visits)

	s.mustKubectl(t, "apply", "--filename", "testdata/second.yaml")
	s.mustKubectl(t, "wait", "--for=condition=Ready", "--timeout=60s", "tenant/globex")
	s.unchanged(t, "with a second tenant", before)
	s.awaitVisits(t, visits)
	restarts := s.mustKubectl(t, "get", "pods", "--namespace", "apps", "--output", "jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	if restarts != "0" {
		t.Errorf("the app was started again %s times", restarts)
	}
}
