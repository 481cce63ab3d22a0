package cluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/cluster"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/reaper"
)

// TestMain lets the test binary act as the reaper.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "reaper" {
		os.Exit(reaper.Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func newSpawner(t *testing.T) *reaper.Spawner {
	t.Helper()
	parentPipe, err := reaper.NewParentPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = parentPipe.Close() })
	return reaper.NewSpawner(parentPipe, os.Args[0], "reaper")
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

func TestFinderSearchesInOrder(t *testing.T) {
	dir := t.TempDir()
	flag := program(t, dir+"/flag/devcluster", "")
	env := program(t, dir+"/env/devcluster", "")
	beside := program(t, dir+"/beside/devcluster", "")
	onPath := program(t, dir+"/path/devcluster", "")
	finder := cluster.Finder{
		Flag:       flag,
		Getenv:     func(string) string { return env },
		Executable: dir + "/beside/einmal",
		LookPath:   func(string) (string, error) { return onPath, nil },
	}
	expect := func(want string) {
		t.Helper()
		if got, err := finder.Find(); err != nil || got != want {
			t.Errorf("found %q, error %v, want %q", got, err, want)
		}
	}
	expect(flag)
	finder.Flag = ""
	expect(env)
	finder.Getenv = func(string) string { return "" }
	expect(beside)
	finder.Executable = dir + "/einmal"
	expect(onPath)
	finder.LookPath = func(string) (string, error) { return "", errors.New("none") }
	if _, err := finder.Find(); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("error %v does not explain how to build devcluster", err)
	}
}

func TestFinderDoesNotFallBackFromANamedProgram(t *testing.T) {
	dir := t.TempDir()
	good := program(t, dir+"/beside/devcluster", "")
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{dir + "/none": "no such file", dir: "directory", plain: "not executable"} {
		finder := cluster.Finder{Flag: path, Executable: filepath.Dir(good) + "/einmal"}
		if _, err := finder.Find(); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v does not contain %q", path, err, want)
		}
	}
}

func TestReadStatus(t *testing.T) {
	dir := t.TempDir()
	running := program(t, dir+"/a", `[ "$*" = "status --data /d --output json" ] || exit 9
echo '{"running":true,"ready":true,"pid":12,"kubeconfig":"/d/k","server":"https://x","version":"v1"}'`)
	status, err := cluster.ReadStatus(t.Context(), newSpawner(t), running, "/d")
	ready := true
	want := cluster.Status{Ready: &ready, Running: true, PID: 12, Kubeconfig: "/d/k", Server: "https://x", Version: "v1"}
	if diff := cmp.Diff(want, status); diff != "" || err != nil {
		t.Errorf("error %v, status (-want +got):\n%s", err, diff)
	}
	stopped := program(t, dir+"/b", `echo '{"running":false}'; exit 3`)
	if status, err := cluster.ReadStatus(t.Context(), newSpawner(t), stopped, "/d"); err != nil || status.Running {
		t.Errorf("status %v, error %v, want not running", status, err)
	}
	broken := program(t, dir+"/c", `echo 'state file is broken' >&2; exit 1`)
	if _, err := cluster.ReadStatus(t.Context(), newSpawner(t), broken, "/d"); err == nil || !strings.Contains(err.Error(), "state file is broken") {
		t.Errorf("error %v does not contain the output of devcluster", err)
	}
}

func TestFindReusesARunningClusterUnlessFresh(t *testing.T) {
	path := program(t, t.TempDir()+"/devcluster", `echo '{"running":true,"pid":12,"kubeconfig":"/d/k","server":"https://127.0.0.1:1"}'`)
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
trap 'echo stopped; exit 0' TERM
echo "args $*"; echo starting; printf 'export KUBE'; sleep 0.1; echo "CONFIG='/d/kube config'"; echo running
while :; do sleep 0.05; done`
	out := &screen{}
	options := cluster.Options{Program: program(t, t.TempDir()+"/devcluster", script), Data: "/d", Fresh: true, Screen: out}
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
	want := "args up --data /d --exit-with-fd 3 --fresh\nstarting\nrunning\nstopped\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("screen (-want +got):\n%s", diff)
	}
}

func TestStartFailsIfTheClusterExitsEarly(t *testing.T) {
	options := cluster.Options{
		Program: program(t, t.TempDir()+"/devcluster", "echo port in use; exit 1"), Data: "/d", Screen: &screen{},
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
