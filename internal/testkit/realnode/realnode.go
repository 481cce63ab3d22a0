// Package realnode runs the script of an operator that starts a devcluster with a real node, for tests.
package realnode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// startTimeout is the timeout for the start of everything, with downloads and builds that no cache has.
	startTimeout = 10 * time.Minute
	// stopTimeout is the timeout for the stop of everything.
	stopTimeout = time.Minute
)

// Node is a devcluster with a real node.
type Node struct {
	devcluster, data string
	stop             func(t *testing.T)
}

// Start runs a script with a new data directory as its argument, until the test ends. It returns when the script prints a line that begins with ready.
func Start(t *testing.T, script, ready string) *Node {
	t.Helper()
	return StartIn(t, t.TempDir(), script, ready)
}

// StartIn is Start with an existing data directory.
func StartIn(t *testing.T, data, script, ready string) *Node {
	t.Helper()
	n := &Node{devcluster: os.Getenv("EINMAL_DEVCLUSTER"), data: data}
	if n.devcluster == "" {
		t.Fatal("set EINMAL_DEVCLUSTER to the program devcluster, or run: make node")
	}
	cmd := exec.Command(script, n.data) //nolint:gosec,noctx // The caller's script. n.stop stops it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &running{cmd: cmd, ready: make(chan struct{}), ended: make(chan struct{})}
	go s.read(out, ready)
	n.stop = stopOnce(n, s)
	t.Cleanup(func() { n.stop(t) })
	select {
	case <-s.ready:
	case <-s.ended:
		t.Fatalf("%s ended before it was ready", script)
	case <-time.After(startTimeout):
		t.Fatalf("%s was not ready after %s", script, startTimeout)
	}
	return n
}

// running is a script that runs.
type running struct {
	cmd *exec.Cmd
	// ready is closed when it says so, and ended when it has ended. Then log is what it has printed.
	ready, ended chan struct{}
	log          strings.Builder
}

// read reads what the script prints.
func (r *running) read(out io.Reader, ready string) {
	defer close(r.ended)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		r.log.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), ready) {
			close(r.ready)
		}
	}
}

// stopOnce returns what stops a script, and explains a failure.
func stopOnce(n *Node, r *running) func(*testing.T) {
	stopped := false
	return func(t *testing.T) {
		t.Helper()
		if stopped {
			return
		}
		stopped = true
		if t.Failed() {
			n.explain(t)
		}
		_ = r.cmd.Process.Signal(syscall.SIGTERM) // It can have ended.
		select {
		case <-r.ended:
		case <-time.After(stopTimeout):
			t.Errorf("%s did not stop within %s", r.cmd.Path, stopTimeout)
			_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) // It can have ended.
			<-r.ended
		}
		_ = r.cmd.Wait() // The signal is the reason.
		if t.Failed() {
			t.Logf("%s:\n%s", r.cmd.Path, r.log.String())
		}
	}
}

// explain logs what can explain a failure: the Pods, the events, the custom objects and the ends of the operators' logs.
func (n *Node) explain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ask := func(args ...string) string {
		out, err := n.Kubectl(ctx, args...)
		if err != nil {
			out += err.Error()
		}
		return out
	}
	t.Logf("Pods:\n%s", ask("get", "pods", "--all-namespaces", "--output", "wide"))
	t.Logf("events:\n%s", ask("get", "events", "--all-namespaces", "--sort-by", ".lastTimestamp"))
	for kind := range strings.FieldsSeq(ask("get", "customresourcedefinitions", "--output", "jsonpath={.items[*].metadata.name}")) {
		t.Logf("%s:\n%s", kind, ask("get", kind, "--all-namespaces", "--output", "yaml"))
	}
	for line := range strings.Lines(ask("get", "deployments", "--all-namespaces", "--no-headers")) {
		if deployment := strings.Fields(line); len(deployment) > 1 {
			t.Logf("the end of the log of %s:\n%s", deployment[1], ask("logs", "--namespace", deployment[0], "deployment/"+deployment[1], "--tail", "100"))
		}
	}
}

// Stop stops everything, as Ctrl-C does. The data directory stays.
func (n *Node) Stop(t *testing.T) {
	t.Helper()
	n.stop(t)
}

// Kubectl runs kubectl and returns what it printed.
func (n *Node) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, n.devcluster, append([]string{"kubectl", "--data", n.data}, args...)...) //nolint:gosec // The test's own arguments.
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// Shell runs commands of a shell that use kubectl, which must succeed, and returns what they printed.
func (n *Node) Shell(t *testing.T, commands string) string {
	t.Helper()
	kubectl := fmt.Sprintf("kubectl() { %q kubectl --data %q \"$@\"; }\n", n.devcluster, n.data)
	out, err := exec.CommandContext(t.Context(), "sh", "-c", kubectl+commands).CombinedOutput() //nolint:gosec // The test's own commands.
	if err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	return string(out)
}

// EachLine runs kubectl until the test ends, and calls a function with each line that it prints, one after the other.
func (n *Node) EachLine(t *testing.T, do func(line string), args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), n.devcluster, append([]string{"kubectl", "--data", n.data}, args...)...) //nolint:gosec // The test's own arguments.
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			do(lines.Text())
		}
	}()
	t.Cleanup(func() { // The context is canceled before.
		<-ended
		_ = cmd.Wait()
	})
}

// MustKubectl is Kubectl for a command that must succeed.
func (n *Node) MustKubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := n.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// BuildImage builds an image with devcluster and loads it into the node: see "devcluster image build --help".
func (n *Node) BuildImage(t *testing.T, name string, args ...string) {
	t.Helper()
	all := append([]string{"image", "build", name, "--data", n.data}, args...)
	if out, err := exec.CommandContext(t.Context(), n.devcluster, all...).CombinedOutput(); err != nil { //nolint:gosec // The test's own arguments.
		t.Fatalf("build the image %s: %v: %s", name, err, out)
	}
}

// FreezeKubelet stops the kubelet of the node, so that Kubernetes takes the node for lost. Its containers go on. The function that it returns, and the end of
// the test, let the kubelet continue.
func (n *Node) FreezeKubelet(t *testing.T) (thaw func()) {
	t.Helper()
	found := 0
	send := func(with syscall.Signal) {
		found = 0
		eachProcess(t, func(pid int, command string) {
			if strings.Contains(command, "\x00kubelet\x00--config="+n.data+"/") {
				signal(t, pid, with)
				found++
			}
		})
	}
	send(syscall.SIGSTOP)
	if found != 1 {
		t.Fatalf("%d kubelets of the node run, want 1", found)
	}
	thaw = func() { send(syscall.SIGCONT) }
	t.Cleanup(thaw)
	return thaw
}

// eachProcess calls a function with each process of the machine and its command line, whose words end with a zero.
func eachProcess(t *testing.T, do func(pid int, command string)) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		command, err := os.ReadFile(file)
		if err != nil {
			continue // It has ended.
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		do(pid, string(command))
	}
}

// signal sends a signal to a process, which can have ended.
func signal(t *testing.T, pid int, with syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, with); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}

// Kill kills the processes of the node's containers whose command line begins with these words, as the kernel does when memory is short. It returns
// how many there were.
func (n *Node) Kill(t *testing.T, words ...string) int {
	t.Helper()
	config, err := os.ReadFile(filepath.Join(n.data, "node", "kubelet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(config), "\ncgroupRoot: /")
	group, _, _ := strings.Cut(rest, "\n")
	killed := 0
	eachProcess(t, func(pid int, command string) {
		if !strings.HasPrefix(command, strings.Join(words, "\x00")+"\x00") {
			return
		}
		groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if err != nil || !strings.Contains(string(groups), "/"+group+"/") {
			return
		}
		signal(t, pid, syscall.SIGKILL)
		killed++
	})
	return killed
}
