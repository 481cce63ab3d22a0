package instance

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func prepared(t *testing.T) Dir {
	t.Helper()
	d, err := At(filepath.Join(t.TempDir(), DefaultName))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Prepare(); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPrepareRefusesForeignDirectory(t *testing.T) {
	d := Dir{Path: t.TempDir()}
	if err := os.WriteFile(d.File("thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Prepare(); err == nil {
		t.Error("a directory with something else in it was accepted")
	}
	if err := d.Clear(); err == nil {
		t.Error("a directory with something else in it was deleted")
	}
	if _, err := os.Stat(d.File("thesis.txt")); err != nil {
		t.Error(err)
	}
}

func TestClear(t *testing.T) {
	d := prepared(t)
	if err := os.MkdirAll(d.File("etcd", "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Clear(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if diff := cmp.Diff([]string{markerName}, names); diff != "" {
		t.Errorf("left in the directory (-want +got):\n%s", diff)
	}
}

func TestLock(t *testing.T) {
	d := prepared(t)
	if locked, err := d.Locked(); err != nil || locked {
		t.Errorf("locked before anyone did: %t, %v", locked, err)
	}
	file, stale, err := d.Lock()
	if err != nil || stale != nil {
		t.Fatalf("stale %v, error %v", stale, err)
	}
	if locked, err := d.Locked(); err != nil || !locked {
		t.Errorf("locked is %t, %v", locked, err)
	}
	if err := d.WriteState(State{PID: os.Getpid(), Started: time.Now()}); err != nil {
		t.Fatal(err)
	}
	var running *RunningError
	if _, _, err := d.Lock(); !errors.As(err, &running) || running.State.PID != os.Getpid() {
		t.Errorf("a second lock: %v", err)
	}
	// A lock that is let go of while its owner left its state is stale.
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	file, stale, err = d.Lock()
	if err != nil || stale == nil || stale.PID != os.Getpid() {
		t.Fatalf("stale %v, error %v", stale, err)
	}
	defer func() { _ = file.Close() }()
	if err := d.RemoveState(); err != nil {
		t.Fatal(err)
	}
	if err := d.RemoveState(); err != nil {
		t.Errorf("the state is already removed: %v", err)
	}
}

func TestNearest(t *testing.T) {
	d := prepared(t)
	below := filepath.Join(filepath.Dir(d.Path), "a", "b")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, ok := Nearest(below); !ok || got != d {
		t.Errorf("nearest is %v, %t, want %v", got, ok, d)
	}
	if got, ok := Nearest(t.TempDir()); ok {
		t.Errorf("found %v where there is none", got)
	}
}
