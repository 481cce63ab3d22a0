package acceptance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// waitTimeout is the timeout of every wait. It is much longer than any step
	// takes, so that tests pass on a busy machine.
	waitTimeout = 60 * time.Second
	// stopLimit is the documented maximum duration of a stop.
	stopLimit = 5 * time.Second
)

// binary returns the path of the built devcluster.
func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("DEVCLUSTER")
	if path == "" {
		path = filepath.Join("..", "..", "..", "bin", "devcluster")
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("find the built binary: %v\nbuild it with: devcluster/build.sh bin/devcluster", err)
	}
	return path
}

// kubernetesVersion returns the version of Kubernetes that go.mod requires.
func kubernetesVersion(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if _, version, ok := strings.Cut(line, "k8s.io/kubernetes "); ok {
			return strings.TrimSpace(version)
		}
	}
	t.Fatal("go.mod does not require k8s.io/kubernetes")
	return ""
}

// result is the output and exit code of a command.
type result struct {
	stdout, stderr string
	code           int
}

// run runs devcluster in dir until it exits.
func run(t *testing.T, dir string, args ...string) result {
	t.Helper()
	return runIn(t, dir, environment(), args...)
}

// runIn runs devcluster in dir with an environment until it exits.
func runIn(t *testing.T, dir string, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t), args...)
	cmd.Dir = dir
	cmd.Env = env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("devcluster %s: %v", strings.Join(args, " "), err)
	}
	return result{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
}

// environment returns the environment of the test without KUBECONFIG.
func environment() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "KUBECONFIG=") {
			env = append(env, entry)
		}
	}
	return env
}

// upProcess is a "devcluster up" that runs in the background.
type upProcess struct {
	t          *testing.T
	cmd        *exec.Cmd
	dir        string
	hold       *os.File // write end of the pipe of --exit-with-fd; closing it stops the cluster
	stdout     *bufio.Reader
	mu         sync.Mutex
	stderr     bytes.Buffer
	exited     chan struct{}
	kubeconfig string
}

func (u *upProcess) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stderr.Write(p)
}

// errors returns the standard error so far.
func (u *upProcess) errors() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stderr.String()
}

// launch starts "devcluster up" in dir. --exit-with-fd ensures that the cluster
// stops with the test, even if the test is killed.
func launch(t *testing.T, dir string, args ...string) *upProcess {
	t.Helper()
	readEnd, writeEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = readEnd.Close() }()
	u := &upProcess{t: t, dir: dir, hold: writeEnd, exited: make(chan struct{})}
	// The context of the test would kill it before the cleanup stops it.
	u.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), binary(t), append([]string{"up", "--exit-with-fd", "3"}, args...)...)
	u.cmd.Dir, u.cmd.Env = dir, environment()
	u.cmd.ExtraFiles = []*os.File{readEnd}
	u.cmd.Stderr = u
	out, in := io.Pipe()
	u.cmd.Stdout = in
	u.stdout = bufio.NewReader(out)
	if err := u.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = u.cmd.Wait() // ProcessState has the exit code
		_ = in.Close()
		close(u.exited)
	}()
	t.Cleanup(func() {
		_ = writeEnd.Close()
		<-u.exited
		if t.Failed() {
			t.Logf("standard error of devcluster up:\n%s", u.errors())
		}
	})
	return u
}

// up starts a cluster in dir and waits until it is ready.
func up(t *testing.T, dir string, args ...string) *upProcess {
	t.Helper()
	u := launch(t, dir, args...)
	line, err := u.stdout.ReadString('\n')
	if err != nil {
		<-u.exited
		t.Fatalf("up exited before it was ready:\n%s", u.errors())
	}
	file, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "export KUBECONFIG=")
	if !ok {
		t.Fatalf("the line on standard output is %q, want export KUBECONFIG=", line)
	}
	u.kubeconfig = file
	return u
}

// wait waits until the process exits and returns the exit code.
func (u *upProcess) wait() int {
	u.t.Helper()
	select {
	case <-u.exited:
	case <-time.After(waitTimeout):
		u.t.Fatalf("up is still running after %s:\n%s", waitTimeout, u.errors())
	}
	return u.cmd.ProcessState.ExitCode()
}

// status is the part of "devcluster status --output json" that the tests use.
type status struct {
	Running    bool   `json:"running"`
	PID        int    `json:"pid"`
	Kubeconfig string `json:"kubeconfig"`
	Server     string `json:"server"`
	Version    string `json:"version"`
	Components []struct {
		Name    string `json:"name"`
		PID     int    `json:"pid"`
		Healthy bool   `json:"healthy"`
	} `json:"components"`
}

func readStatus(t *testing.T, dir string) status {
	t.Helper()
	var s status
	r := run(t, dir, "status", "--output", "json")
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
		t.Fatalf("parse status: %v in %q, standard error %q", err, r.stdout, r.stderr)
	}
	if want := map[bool]int{true: 0, false: 3}[s.Running]; r.code != want {
		t.Errorf("status exits with %d when running is %t, want %d", r.code, s.Running, want)
	}
	return s
}

// pids returns the process IDs of the cluster in dir by name, including "up".
func pids(t *testing.T, dir string) map[string]int {
	t.Helper()
	s := readStatus(t, dir)
	all := map[string]int{"up": s.PID}
	for _, c := range s.Components {
		all[c.Name] = c.PID
	}
	if len(all) != 7 {
		t.Fatalf("got processes %v, want up and six components", all)
	}
	return all
}

// gone reports an error that names a process that still exists.
func gone(processes map[string]int) error {
	for name, pid := range processes {
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return fmt.Errorf("%s, process %d, still exists", name, pid)
		}
	}
	return nil
}

// clients returns clients for a kubeconfig.
func clients(t *testing.T, kubeconfig string) (kubernetes.Interface, dynamic.Interface) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 500, 500
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return typed, untyped
}

// eventually waits until check succeeds.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.After(waitTimeout)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("after %s: %v", waitTimeout, err)
		case <-ticker.C:
		}
	}
}
