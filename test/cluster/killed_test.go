package cluster_test

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/internal/testkit/cluster"
	"github.com/einmal-operators/einmal/test/fixture"
)

// A process that dies between its finalizer and its first record leaves an object that the next one creates: the finalizer alone proves nothing.
// A process that dies between a call and its result leaves an intent, by which the next one finds out.
func TestAKillAtTheWorstMomentOnARealControlPlane(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allowState(t)
	program := einmaltest.Build(t, "./testdata/killed")
	kubeconfig := cluster.KubeconfigOf(t, w.account)
	for _, use := range fixture.Carriers() {
		run := func(t *testing.T, j *fixture.Journal, env ...string) *process {
			t.Helper()
			return start(t, exec.Command(program, "run", "--kubeconfig", kubeconfig, "--state-namespace", "default", "--leader-elect=false", //nolint:noctx // It is ended by the test, in its own ways.
				"--health-probe-bind-address", "0", "--metrics-bind-address", "0"), j, append(env, "KIND="+use.Kind)...)
		}
		t.Run("between finalizer and record in the "+use.Name, func(t *testing.T) { w.killed(t, use, run) })
		t.Run("between call and result, record in the "+use.Name, func(t *testing.T) { w.killedAfterACall(t, use, run) })
	}
}

// launch starts an operator in a process of its own.
type launch func(t *testing.T, j *fixture.Journal, env ...string) *process

func (w *world) killed(t *testing.T, use fixture.Carrier, run launch) {
	w.watermark(t, use, "")
	j := &fixture.Journal{}
	first := run(t, j, "HANG=yes")
	first.serves(t)
	w.create(t, use, "halfway")
	cluster.Until(t, "the create handler runs", func() bool { return len(j.Of("halfway")) > 0 })
	first.kill(t)
	found, err := w.get(t.Context(), use, "halfway")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{fixture.Identity + "/finalizer"}, found.GetFinalizers()); diff != "" || use.Record(found) != "" {
		t.Fatalf("after the kill there is the record %q and finalizers %s", use.Record(found), diff)
	}
	calls := []string{"make (create, attempt 1)", "make (create, attempt 1) maybe repeated"}
	var second *process
	w.spend(t, use, "creation goes on after a kill", 1, func() {
		second = run(t, j)
		w.called(t, use, j, "halfway", calls...)
		second.stop(t)
	})
	w.spend(t, use, "the next start", 0, func() {
		second = run(t, j)
		second.serves(t)
		w.called(t, use, j, "halfway", calls...)
	})
	w.delete(t, use, "halfway")
	calls = append(calls, "unmake (delete, attempt 1)")
	if got := j.Of("halfway"); !slices.Equal(got, calls) {
		t.Errorf("at the end: got %q, want %q", got, calls)
	}
	second.stop(t)
}

// process is an operator in a process of its own.
type process struct {
	command *exec.Cmd
	log     *fixture.Log
	ended   chan struct{}
	result  error
}

// start runs a command until the test ends, at the latest. What it prints goes to the journal.
func start(t *testing.T, command *exec.Cmd, j *fixture.Journal, env ...string) *process {
	t.Helper()
	p := &process{command: command, log: fixture.NewLog(t), ended: make(chan struct{})}
	command.Env = append(os.Environ(), env...)
	command.Stderr = p.log
	command.Stdout = cluster.Lines(func(line string) {
		object, call, _ := strings.Cut(line, ": ")
		j.Add(object, call)
	})
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.result = command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-p.ended
	})
	return p
}

// serves waits until the operator has looked at all objects that were there.
func (p *process) serves(t *testing.T) {
	t.Helper()
	cluster.Until(t, "the operator serves", func() bool { return p.log.Count("msg~watching, ") > 0 })
}

// kill ends the operator with SIGKILL.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	var ended *exec.ExitError
	if !errors.As(p.result, &ended) {
		t.Fatalf("it was not killed, but ended with %v", p.result)
	}
	if status, is := ended.Sys().(syscall.WaitStatus); !is || status.Signal() != syscall.SIGKILL {
		t.Fatalf("it was not killed, but ended with %v", p.result)
	}
}

// stop ends the operator as a cluster does, and expects it to go in order.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(cluster.Patience):
		t.Fatal("the operator did not stop")
	}
	if p.result != nil {
		t.Errorf("the operator ended with %v", p.result)
	}
}
