package cluster_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/edge/kube"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// replicas runs replicas of one operator.
type replicas struct {
	*world
	program, kubeconfig string
}

// replica is one of them, with the calls that it made.
type replica struct {
	*process
	calls *fixture.Journal
}

// One of several replicas acts, and another one takes over when that one stops, crashes or freezes.
func TestReplicasOnARealControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := &replicas{world: w, program: einmaltest.Build(t, "./testdata/replica")}
	r.kubeconfig = cluster.KubeconfigOf(t, w.Account(t, "replicas",
		rbacv1.PolicyRule{APIGroups: []string{fixture.Group}, Resources: []string{"widgets", "widgets/status"}, Verbs: []string{"get", "list", "watch", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "patch"}},
		rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}}))
	r.create(t, fixture.StatusCarrier(), "guarded")
	t.Run("one that stops hands over at once", r.handOver)
	t.Run("after one that is killed another takes over, and no retry is lost", r.killed)
	t.Run("one that was frozen does nothing any more", r.frozen)
}

func (r *replicas) start(t *testing.T) replica {
	t.Helper()
	calls := &fixture.Journal{}
	return replica{calls: calls, process: start(t, exec.Command(r.program, "run", "--kubeconfig", r.kubeconfig, "--state-namespace", "default", //nolint:noctx // It is ended by the test, in its own ways.
		"--health-probe-bind-address", "0", "--metrics-bind-address", "0"), calls)}
}

// pair starts two replicas, one after the other has been elected.
func (r *replicas) pair(t *testing.T) (leader, standby replica) {
	t.Helper()
	leader = r.start(t)
	leader.serves(t)
	cluster.Until(t, "the daemon runs", func() bool { return len(leader.beats(t)) > 0 })
	return leader, r.start(t)
}

// beats are the times at which the daemon of the replica has beaten, in microseconds.
func (r replica) beats(t *testing.T) []int64 {
	t.Helper()
	var all []int64
	for _, text := range r.calls.Of("guard of guarded") {
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, at)
	}
	return all
}

// restsFor waits until the daemon runs in the second replica, and tells how often that of the first one has beaten after that.
func restsFor(t *testing.T, first, second replica) (overlap int) {
	t.Helper()
	cluster.Until(t, "the daemon runs in the other replica", func() bool { return len(second.beats(t)) > 0 })
	begun, last := second.beats(t)[0], first.beats(t)
	for _, at := range last {
		if at >= begun {
			overlap++
		}
	}
	t.Logf("from the last beat of one daemon to the first of the other: %s; beats at the same time: %d",
		time.Duration(begun-last[len(last)-1])*time.Microsecond, overlap)
	return overlap
}

// takesOver waits until a replica acts, and tells how long that took.
func (r replica) takesOver(t *testing.T, since time.Time) {
	t.Helper()
	cluster.Until(t, "the other replica is elected", func() bool { return r.log.Count("msg=elected as leader") > 0 })
	t.Logf("it took over after %s", time.Since(since).Round(10*time.Millisecond))
}

func (r *replicas) handOver(t *testing.T) {
	leader, standby := r.pair(t)
	r.create(t, fixture.StatusCarrier(), "first")
	// It is new, and the replica has just been elected: no process can have called before, so no user is asked (docs/concepts/effects.md).
	r.called(t, fixture.StatusCarrier(), leader.calls, "first", "make 1", "call")
	stopped := time.Now()
	leader.stop(t)
	standby.takesOver(t, stopped)
	if took := time.Since(stopped); took > 10*time.Second {
		t.Errorf("the lease was not released: it took %s", took)
	}
	if n := restsFor(t, leader, standby); n > 0 {
		t.Errorf("two daemons ran at the same time, for %d beats", n)
	}
	r.create(t, fixture.StatusCarrier(), "second")
	r.called(t, fixture.StatusCarrier(), standby.calls, "second", "make 1")
	if got := standby.calls.Of("first"); len(got) > 0 {
		t.Errorf("what was done is done again: %q", got)
	}
	standby.stop(t)
}

func (r *replicas) killed(t *testing.T) {
	leader, standby := r.pair(t)
	r.create(t, fixture.StatusCarrier(), "retried")
	r.called(t, fixture.StatusCarrier(), leader.calls, "retried", "make 1")
	killed := time.Now()
	leader.kill(t)
	standby.takesOver(t, killed)
	if n := restsFor(t, leader, standby); n > 0 {
		t.Errorf("two daemons ran at the same time, for %d beats", n)
	}
	cluster.Eventually(t, "the retries go on", func(context.Context) error {
		if got := standby.calls.Of("retried"); !slices.Equal(got, []string{"make 2", "make 3"}) {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	standby.stop(t)
}

// frozen shows what a lease can promise: a process that was frozen without noticing does nothing with the API server once it can know, and the
// contexts of its handlers end.
func (r *replicas) frozen(t *testing.T) {
	leader, standby := r.pair(t)
	r.create(t, fixture.StatusCarrier(), "long")
	working := func(who replica) {
		cluster.Until(t, "the handler works", func() bool { return len(who.calls.Of("long")) > 10 })
	}
	working(leader)
	frozen := time.Now()
	r.signal(t, leader, syscall.SIGSTOP)
	standby.takesOver(t, frozen)
	working(standby)
	before := len(leader.calls.Of("long"))
	r.signal(t, leader, syscall.SIGCONT)
	woken := time.Now()
	select {
	case <-leader.ended:
	case <-time.After(cluster.Patience):
		t.Fatal("the frozen replica goes on")
	}
	t.Logf("the frozen replica ended %s after it was woken, and its handler worked for %d beats of 50ms meanwhile",
		time.Since(woken).Round(10*time.Millisecond), len(leader.calls.Of("long"))-before)
	if took := time.Since(woken); took > kube.NewLeaseTiming(1).Deadline/2 {
		t.Errorf("the frozen replica went on for %s, as long as an election goes on asking", took)
	}
	if n := restsFor(t, leader, standby); n > 50 {
		t.Errorf("two daemons ran at the same time, for %d beats", n)
	}
	if leader.result == nil {
		t.Error("the frozen replica ended as if it had been told to")
	}
	found, err := r.get(t.Context(), fixture.StatusCarrier(), "long")
	if err != nil {
		t.Fatal(err)
	}
	if phase, _, _ := unstructured.NestedString(found.Object, "status", "phase"); phase != "" {
		t.Errorf("the frozen replica has written %q", phase)
	}
	standby.stop(t)
}

func (r *replicas) signal(t *testing.T, to replica, what syscall.Signal) {
	t.Helper()
	if err := to.command.Process.Signal(what); err != nil {
		t.Fatal(err)
	}
}
