package einmaltest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/internal/testkit/cluster"
)

// Build builds the program in a folder and returns its path. The program has the race detector if the test has it.
func Build(t *testing.T, folder string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, folder) //nolint:gosec // The test names it.
	if raceDetector {
		build.Args = slices.Insert(build.Args, 2, "-race")
	}
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", folder, err, output)
	}
	return program
}

// Program is an operator that runs as a process of its own.
type Program struct {
	command *exec.Cmd
	ended   chan struct{}
	result  error

	mu     sync.Mutex
	log    strings.Builder
	killed bool
}

// Run runs an operator's program with its command run, as a single replica and without ports, until the test ends or the program is stopped. It acts
// as the account of the kubeconfig. Further arguments come after those, so that they can replace them: --leader-elect=true with
// --state-namespace elects.
func (c *Cluster) Run(t *testing.T, program, kubeconfig string, args ...string) *Program {
	t.Helper()
	p := &Program{ended: make(chan struct{})}
	args = append([]string{
		"run", "--kubeconfig", kubeconfig, "--leader-elect=false", "--health-probe-bind-address", "0", "--metrics-bind-address", "0",
	}, args...)
	p.command = exec.Command(program, args...) //nolint:noctx,gosec // It is stopped in order; the test names it.
	p.command.Env = os.Environ()
	lines := cluster.Lines(p.note)
	p.command.Stdout, p.command.Stderr = lines, lines
	if err := p.command.Start(); err != nil {
		t.Fatalf("start the operator: %v", err)
	}
	go func() {
		defer close(p.ended)
		p.result = p.command.Wait()
	}()
	t.Cleanup(func() {
		p.Stop(t)
		if t.Failed() {
			t.Logf("the log of the operator:\n%s", p.Log())
		}
	})
	return p
}

func (p *Program) note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log.WriteString(line + "\n")
}

// Log is what the operator has logged so far.
func (p *Program) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// AwaitLog waits until the operator has logged some words; it fails the test if that takes more than a minute.
func (p *Program) AwaitLog(t *testing.T, words string) {
	t.Helper()
	Eventually(t, "the log says "+words, func(context.Context) error {
		if !strings.Contains(p.Log(), words) {
			return errors.New("it does not yet")
		}
		return nil
	})
}

// Kill ends the operator at once, as a power failure does.
func (p *Program) Kill() {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	_ = p.command.Process.Kill() // It may have ended by itself.
	<-p.ended
}

// Stop ends the operator as a cluster does, and fails the test if it does not go in order. To stop it twice is to stop it
// once.
func (p *Program) Stop(t *testing.T) {
	t.Helper()
	_ = p.command.Process.Signal(syscall.SIGTERM) // It may have ended already.
	select {
	case <-p.ended:
	case <-time.After(cluster.Patience):
		p.Kill()
		t.Error("the operator did not stop when it was told to")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.result != nil && !p.killed {
		t.Errorf("the operator ended with %v", p.result)
	}
}
