package cluster_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/process"
)

func newSpawner(t *testing.T) *process.Spawner {
	t.Helper()
	spawner, err := process.NewSpawner()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spawner.Close() })
	return spawner
}

func program(t *testing.T, path, script string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProgramIsSearchedInOrder(t *testing.T) {
	dir := t.TempDir()
	flag := program(t, dir+"/flag/devcluster", "")
	env := program(t, dir+"/env/devcluster", "")
	onPath := program(t, dir+"/path/devcluster", "")
	self, err := filepath.EvalSymlinks(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	beside := program(t, filepath.Join(filepath.Dir(self), "devcluster"), "")
	t.Cleanup(func() { _ = os.Remove(beside) })
	expect := func(flag, want string) {
		t.Helper()
		if got, err := cluster.FindProgram(flag); err != nil || got != want {
			t.Errorf("found %q, error %v, want %q", got, err, want)
		}
	}
	t.Setenv("PATH", dir+"/path")
	t.Setenv(cluster.ProgramVariable, env)
	expect(flag, flag)
	expect("", env)
	t.Setenv(cluster.ProgramVariable, "")
	expect("", beside)
	_ = os.Remove(beside)
	expect("", onPath)
	t.Setenv("PATH", dir)
	if _, err := cluster.FindProgram(""); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("error %v does not explain how to build devcluster", err)
	}
}

func TestNoFallbackFromANamedProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", filepath.Dir(program(t, dir+"/path/devcluster", "")))
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir + "/none": "no such file", dir: "directory", plain: "permission denied"} {
		if _, err := cluster.FindProgram(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v does not contain %q", path, err, want)
		}
	}
}

func TestReadStatus(t *testing.T) {
	dir := t.TempDir()
	running := program(t, dir+"/a", `[ "$*" = "status --data /d --output json" ] || exit 9
echo '{"running":true,"ready":true,"pid":12,"kubeconfig":"/d/k","server":"https://x","version":"v1"}'`)
	read := func(path string) (cluster.Status, error) {
		return cluster.ReadStatus(t.Context(), newSpawner(t), cluster.Options{Program: path, Data: "/d"})
	}
	status, err := read(running)
	want := cluster.Status{Ready: true, Running: true, PID: 12, Kubeconfig: "/d/k", Server: "https://x", Version: "v1"}
	if diff := cmp.Diff(want, status); diff != "" || err != nil {
		t.Errorf("error %v, status (-want +got):\n%s", err, diff)
	}
	stopped := program(t, dir+"/b", `echo '{"running":false}'; exit 3`)
	if status, err := read(stopped); err != nil || status.Running {
		t.Errorf("status %v, error %v, want not running", status, err)
	}
	broken := program(t, dir+"/c", `echo 'state file is broken' >&2; exit 1`)
	if _, err := read(broken); err == nil || !strings.Contains(err.Error(), "state file is broken") {
		t.Errorf("error %v does not contain the output of devcluster", err)
	}
}

func TestFindReusesARunningClusterUnlessFresh(t *testing.T) {
	path := program(t, t.TempDir()+"/devcluster", `echo '{"running":true,"ready":true,"pid":12,"kubeconfig":"/d/k","server":"https://127.0.0.1:1"}'`)
	options := cluster.Options{Program: path, Data: "/d"}
	found, err := cluster.Find(t.Context(), newSpawner(t), options)
	if err != nil || found == nil || found.Kubeconfig != "/d/k" || found.Server != "https://127.0.0.1:1" || found.Started() {
		t.Fatalf("found %v, error %v", found, err)
	}
	if err := found.Stop(); err != nil {
		t.Errorf("Stop of a cluster that was not started by this process: %v", err)
	}
	options.Fresh = true
	if _, err := cluster.Find(t.Context(), newSpawner(t), options); err == nil || !strings.Contains(err.Error(), "down --data /d") {
		t.Errorf("error %v does not explain how to stop the cluster", err)
	}
}

func TestFindRefusesARunningClusterWithOtherNodes(t *testing.T) {
	path := program(t, t.TempDir()+"/devcluster", `echo '{"running":true,"ready":true,"pid":12,"node":{"kind":"simulated"}}'`)
	for kind, refused := range map[string]bool{"": false, "simulated": false, "real": true} {
		_, err := cluster.Find(t.Context(), newSpawner(t), cluster.Options{Program: path, Data: "/d", Node: kind})
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "must be real, got simulated\nremedy: stop it first; its data is kept: ") {
			t.Errorf("with the kind %q: %v", kind, err)
		}
	}
}

// screen is a string builder for concurrent writers.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestStartWaitsUntilReadyAndStopTerminates(t *testing.T) {
	script := `if [ "$1" = status ]; then echo '{"running":true,"kubeconfig":"/d/kube config","server":"https://127.0.0.1:1"}'; exit; fi
trap 'echo stopped >&2; exit 0' TERM
echo "args $*" >&2; echo starting >&2; sleep 0.1; echo "export KUBECONFIG='/d/kube config'"; echo running >&2
while :; do sleep 0.05; done`
	out := &screen{}
	options := cluster.Options{Program: program(t, t.TempDir()+"/devcluster", script), Data: "/d", Fresh: true, Node: "real", Screen: out}
	started, err := cluster.Start(t.Context(), newSpawner(t), options)
	if err != nil {
		t.Fatal(err)
	}
	if started.Kubeconfig != "/d/kube config" || started.Server != "https://127.0.0.1:1" || !started.Started() {
		t.Errorf("started %v", started)
	}
	// An earlier stop would end the program before it prints its last line.
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(out.String(), "running\n"); {
		if time.Now().After(deadline) {
			t.Fatalf("the program did not print its last line: %q", out)
		}
		runtime.Gosched()
	}
	if err := started.Stop(); err != nil {
		t.Error(err)
	}
	want := "args up --data /d --exit-with-fd 3 --fresh --node=real\nstarting\nrunning\nstopped\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("screen (-want +got):\n%s", diff)
	}
}

func TestStartFailsIfTheClusterExitsEarly(t *testing.T) {
	options := cluster.Options{
		Program: program(t, t.TempDir()+"/devcluster", "echo port in use >&2; exit 1"), Data: "/d", Screen: &screen{},
	}
	if _, err := cluster.Start(t.Context(), newSpawner(t), options); err == nil || !strings.Contains(err.Error(), "exit code 1") {
		t.Errorf("error %v does not contain the exit code", err)
	}
}

func TestFindWaitsForAStartingCluster(t *testing.T) {
	dir := t.TempDir()
	path := program(t, dir+"/devcluster", `if [ -e `+dir+`/asked ]; then ready=true; else ready=false; touch `+dir+`/asked; fi
echo '{"running":true,"pid":12,"kubeconfig":"/d/k","server":"https://127.0.0.1:1","ready":'$ready'}'`)
	found, err := cluster.Find(t.Context(), newSpawner(t), cluster.Options{Program: path, Data: "/d"})
	if err != nil || found == nil || found.Kubeconfig != "/d/k" {
		t.Errorf("found %v, error %v", found, err)
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{
		"/plain/path-1.x": "/plain/path-1.x", "/with blank": "'/with blank'", "/with'quote": `'/with'\''quote'`, "": "''", "~/$HOME": "'~/$HOME'",
	} {
		if got := cluster.Quote(s); got != want {
			t.Errorf("Quote(%q) = %s, want %s", s, got, want)
		}
	}
}
