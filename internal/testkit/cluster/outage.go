package cluster

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// apiServer is what devcluster calls the component.
const apiServer = "kube-apiserver"

// SignalServer sends a signal to the process of the API server: SIGSTOP freezes it, SIGCONT lets it go on.
func (c *Cluster) SignalServer(t *testing.T, signal syscall.Signal) {
	t.Helper()
	c.requireOwn(t)
	text, err := exec.CommandContext(t.Context(), c.program, "status", "--data", c.data, "--output", "json").Output() //nolint:gosec // The developer names the program.
	if err != nil {
		t.Fatalf("find the API server's process: %v", err)
	}
	var status struct {
		Components []struct {
			Name string `json:"name"`
			PID  int    `json:"pid"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &status); err != nil {
		t.Fatalf("find the API server's process: %v in %s", err, text)
	}
	for _, component := range status.Components {
		if component.Name != apiServer {
			continue
		}
		if err := syscall.Kill(component.PID, signal); err != nil {
			t.Fatalf("signal the API server: %v", err)
		}
		return
	}
	t.Fatalf("there is no API server in %s", text)
}

// requireOwn fails the test on a shared control plane.
func (c *Cluster) requireOwn(t *testing.T) {
	t.Helper()
	if c.shared {
		t.Fatal("signal the API server: the control plane is shared with other tests; use Start instead of Shared")
	}
}

// KillServer kills the API server, and with it goes the rest of the control plane. Its port is kept until the returned
// function starts it again, on the same data.
func (c *Cluster) KillServer(t *testing.T) (restart func()) {
	t.Helper()
	c.requireOwn(t)
	release := c.reserve(t)
	c.SignalServer(t, syscall.SIGKILL)
	select {
	case <-c.ended:
	case <-time.After(startTimeout):
		t.Fatal("the control plane goes on without its API server")
	}
	return func() {
		t.Helper()
		defer release()
		if path := c.up(t); path != c.Kubeconfig {
			t.Fatalf("the kubeconfig was %s and is %s", c.Kubeconfig, path)
		}
	}
}

// Snapshot copies the data of etcd. The function that it returns puts the copy back. Both kill the control plane and start it again.
func (c *Cluster) Snapshot(t *testing.T) (restore func()) {
	t.Helper()
	data, kept := filepath.Join(c.data, "etcd"), filepath.Join(t.TempDir(), "etcd")
	replace := func(to, from string) {
		t.Helper()
		restart := c.KillServer(t)
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil { //nolint:gosec // Folders of the test.
			t.Fatalf("copy %s to %s: %v: %s", from, to, err, out)
		}
		restart()
	}
	replace(kept, data)
	return func() {
		t.Helper()
		replace(data, kept)
	}
}

// reusePort is SO_REUSEPORT, which package syscall does not name.
const reusePort = 0xf

// reserve keeps the port of the API server while it does not listen there: connections are refused, and no other program gets the port.
func (c *Cluster) reserve(t *testing.T) (release func()) {
	t.Helper()
	address, err := url.Parse(c.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, reusePort, 1)
	}
	if err == nil {
		err = syscall.Bind(socket, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		t.Fatalf("reserve port %d: %v", port, err)
	}
	return func() { _ = syscall.Close(socket) }
}
