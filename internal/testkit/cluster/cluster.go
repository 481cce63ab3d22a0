// Package cluster gives tests a real control plane: the program devcluster, started for one test or shared by many.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The longest that a control plane may take to start, and that a test waits for something to happen, on a busy
// machine.
const (
	startTimeout = 3 * time.Minute
	Patience     = 5 * time.Minute
)

// pollInterval is how often a test looks again.
const pollInterval = 20 * time.Millisecond

// programVariable names the program devcluster where it is not in bin/ of the project.
const programVariable = "EINMAL_DEVCLUSTER"

// sharedVariable names the kubeconfig of a running control plane, which tests share.
const sharedVariable = "EINMAL_TEST_KUBECONFIG"

// Cluster is a control plane, seen by a user with all rights. Operators get an Account of their own.
type Cluster struct {
	client.Client
	Config     *rest.Config
	Kubeconfig string
	program    string
	// data is the folder of the control plane. On a shared control plane, it contains only the cache of kubectl.
	data string
	// shared reports whether other tests use the control plane too.
	shared bool
	// ended is closed when the program has ended. It is nil on a shared control plane.
	ended <-chan struct{}
}

// Start starts a control plane that ends with the test.
func Start(t *testing.T) *Cluster {
	t.Helper()
	c := &Cluster{program: Program(t), data: t.TempDir()}
	c.Kubeconfig = c.up(t)
	c.connect(t)
	return c
}

// Shared returns the control plane that EINMAL_TEST_KUBECONFIG names, with administrator rights. Other tests use it at the same time. If the
// variable is not set, Shared starts a control plane for this test alone. Shared fails the test if the API server does not have a loopback
// address, as devcluster has: tests delete objects that they did not create.
func Shared(t *testing.T) *Cluster {
	t.Helper()
	kubeconfig := os.Getenv(sharedVariable)
	if kubeconfig == "" {
		return Start(t)
	}
	c := &Cluster{program: Program(t), data: t.TempDir(), Kubeconfig: kubeconfig, shared: true}
	c.connect(t)
	if address, err := url.Parse(c.Config.Host); err != nil || !net.ParseIP(address.Hostname()).IsLoopback() {
		t.Fatalf("%s must name a kubeconfig of devcluster, whose API server has a loopback address; got %s", sharedVariable, c.Config.Host)
	}
	return c
}

// connect makes the client.
func (c *Cluster) connect(t *testing.T) {
	t.Helper()
	var err error
	if c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	c.Config.QPS = -1
	if c.Client, err = client.New(c.Config, client.Options{Scheme: clientscheme.Scheme}); err != nil {
		t.Fatal(err)
	}
}

// Program finds the program devcluster: what the variable names, else bin/devcluster of the project.
func Program(t *testing.T) string {
	t.Helper()
	found := os.Getenv(programVariable)
	if found == "" {
		_, here, _, _ := runtime.Caller(0)
		found = filepath.Join(filepath.Dir(here), "..", "..", "..", "bin", "devcluster")
	}
	if _, err := os.Stat(found); err != nil {
		t.Fatalf("the control plane for tests is not built: %v; run make build", err)
	}
	return found
}

// up runs the control plane and returns the path of its kubeconfig.
func (c *Cluster) up(t *testing.T) string {
	t.Helper()
	// The control plane ends when the pipe is closed, also when the test is killed.
	lifeline, hold, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(c.program, "up", "--data", c.data, "--exit-with-fd", "3") //nolint:noctx,gosec // It ends with the pipe; the developer names the program.
	command.ExtraFiles = []*os.File{lifeline}
	ready := make(chan string, 1)
	said := &bytes.Buffer{}
	command.Stdout = Lines(func(line string) {
		if path, announced := strings.CutPrefix(line, "export KUBECONFIG="); announced {
			ready <- strings.Trim(path, `"'`)
		}
	})
	command.Stderr = said
	if err := command.Start(); err != nil {
		t.Fatalf("start the control plane: %v", err)
	}
	_ = lifeline.Close()
	ended := make(chan struct{})
	c.ended = ended
	go func() {
		defer close(ended)
		err = command.Wait()
	}()
	t.Cleanup(func() {
		_ = hold.Close()
		select {
		case <-ended:
		case <-time.After(startTimeout):
			_ = command.Process.Kill()
		}
	})
	select {
	case path := <-ready:
		return path
	case <-ended:
		t.Fatalf("the control plane ended early: %v\n%s", err, said)
	case <-time.After(startTimeout):
		t.Fatalf("the control plane is not ready within %s\n%s", startTimeout, said)
	}
	return ""
}

// Lines hands on the whole lines of a process's output.
func Lines(each func(string)) io.Writer { return &lines{each: each} }

type lines struct {
	each    func(string)
	partial []byte
}

// Write takes any part of the output.
func (l *lines) Write(part []byte) (int, error) {
	l.partial = append(l.partial, part...)
	for {
		line, left, found := bytes.Cut(l.partial, []byte("\n"))
		if !found {
			return len(part), nil
		}
		l.each(string(line))
		l.partial = left
	}
}

// Kubectl runs kubectl with all rights and returns what it prints. A failure fails the test.
func (c *Cluster) Kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience) // Cleanups use it too, when the test's own has ended.
	defer cancel()
	// By default, devcluster writes the kubeconfig to the data directory.
	data := filepath.Dir(c.Kubeconfig)
	command := exec.CommandContext(ctx, c.program, append([]string{"kubectl", "--data", data}, args...)...) //nolint:gosec // The developer names the program.
	// By default kubectl believes for hours what it was once told of the kinds of a server, also when another one has its address.
	// The flag --applyset of kubectl apply is alpha.
	command.Env = append(os.Environ(), "KUBECACHEDIR="+filepath.Join(c.data, "kubectl"), "KUBECTL_APPLYSET=true")
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// Eventually repeats an attempt until it succeeds; if it does not within Patience, the test fails with the last error. The error of an attempt
// that the end of Patience interrupts counts only if there is no other.
func Eventually(t *testing.T, what string, attempt func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if err := succeed(ctx, attempt); err != nil {
		t.Fatalf("%s: not within %s: %v", what, Patience, err)
	}
}

// succeed repeats an attempt until it succeeds. When the context has ended, it returns the error of the last attempt that was not interrupted.
func succeed(ctx context.Context, attempt func(context.Context) error) error {
	pause := time.NewTicker(pollInterval)
	defer pause.Stop()
	var last error
	for {
		err := attempt(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() == nil:
			last = err
		case last == nil:
			return err
		default:
			return last
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return last
		}
	}
}

// errNotYet is for attempts that have no better reason.
var errNotYet = errors.New("not yet")

// Until is Eventually for a condition.
func Until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	Eventually(t, what, func(context.Context) error {
		if holds() {
			return nil
		}
		return fmt.Errorf("%s: %w", what, errNotYet)
	})
}
