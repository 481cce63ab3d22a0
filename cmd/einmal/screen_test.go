package main_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/command"
)

const (
	// einmalVariable makes the test binary run einmal.
	einmalVariable = "EINMAL_TEST_PLAYS_EINMAL"

	// waitTimeout is the timeout of every wait in a test.
	waitTimeout = 2 * time.Minute
)

// updateFlag makes the test of wrong command lines rewrite the file that it compares with.
const updateFlag = "update"

// TestMain lets the test binary act as einmal.
func TestMain(m *testing.M) {
	if os.Getenv(einmalVariable) != "" {
		os.Exit(command.Main(os.Args, "v0.0.0-test"))
	}
	flag.Bool(updateFlag, false, "rewrite testdata/commands.txt")
	if err := compileOnce(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// compileOnce compiles the test operator to fill the build cache, so that no test runs into a timeout while compiling. It links no program.
func compileOnce() error {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-export", "-deps", "./testdata/operator")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile the test operator: %w\n%s", err, output)
	}
	return nil
}

// screen collects the output of a program.
type screen struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

func (s *screen) read() (text string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String(), s.changed
}

// program is a running einmal.
type program struct {
	t      *testing.T
	cmd    *exec.Cmd
	screen *screen
	ended  chan struct{}
	seen   int // length of the output that await has consumed
}

// devcluster returns the path of the real devcluster.
func devcluster(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", "devcluster"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("find devcluster: %v\nbuild it with `make build` or `devcluster/build.sh bin/devcluster`", err)
	}
	return path
}

func einmal(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir = dir
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "KUBECONFIG=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, einmalVariable+"=1", "EINMAL_DEVCLUSTER="+devcluster(t), "GOWORK=off")
	return cmd
}

// start starts einmal in a directory. It is killed at the end of the test.
func start(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	return launch(t, einmal(t, dir, args...))
}

// launch starts a command. Its output goes to a screen unless it has another destination.
func launch(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, cmd: cmd, screen: newScreen(), ended: make(chan struct{})}
	if p.cmd.Stdout == nil {
		p.cmd.Stdout, p.cmd.Stderr = p.screen, p.screen
	}
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			text, _ := p.screen.read()
			t.Logf("screen of einmal %s:\n%s", strings.Join(cmd.Args[1:], " "), text)
		}
	})
	return p
}

// await waits for a text on the screen after the previously awaited one, and returns the text between them.
func (p *program) await(text string) string {
	p.t.Helper()
	deadline := time.After(waitTimeout)
	for {
		all, changed := p.screen.read()
		if i := strings.Index(all[p.seen:], text); i >= 0 {
			between := all[p.seen : p.seen+i]
			p.seen += i + len(text)
			return between
		}
		select {
		case <-changed:
		case <-p.ended:
			if all, _ := p.screen.read(); strings.Contains(all[p.seen:], text) {
				continue
			}
			p.t.Fatalf("einmal exited without %q on its screen", text)
		case <-deadline:
			p.t.Fatalf("no %q on the screen within %s", text, waitTimeout)
		}
	}
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// end waits until the program exits and returns the exit code.
func (p *program) end() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(waitTimeout):
		p.t.Fatalf("einmal did not exit within %s", waitTimeout)
		return 0
	}
}

// processes returns the processes whose command line contains the directory.
func processes(t *testing.T, dir string) map[int]string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for line := range strings.Lines(string(output)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.HasPrefix(fields[1], "Z") || !strings.Contains(line, dir) {
			continue
		}
		if pid, err := strconv.Atoi(fields[0]); err == nil {
			found[pid] = strings.Join(fields[2:], " ")
		}
	}
	return found
}

// expectNoProcesses waits until no command line of a process contains the directory.
func expectNoProcesses(t *testing.T, dir string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for len(processes(t, dir)) > 0 {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("processes left behind: %v", processes(t, dir))
		}
	}
}

// run runs a command until it exits and returns its output and exit code.
func run(t *testing.T, cmd *exec.Cmd) (string, int) {
	t.Helper()
	output, err := cmd.CombinedOutput()
	return string(output), exitCode(err)
}

// expectText fails unless the text contains all parts in this order.
func expectText(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Errorf("no %q (after the previous parts) in\n%s", part, text)
			return
		}
		rest = after
	}
}

// expectNoFiles fails if there is a regular file below a directory, except for its lock.
func expectNoFiles(t *testing.T, dir string) {
	t.Helper()
	_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && path != filepath.Join(dir, "lock") {
			t.Errorf("file left behind: %s", path)
		}
		return nil
	})
}
