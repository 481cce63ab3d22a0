package instance

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
		t.Error("a directory with files of the user was accepted")
	}
	if _, err := d.Clear(); err == nil {
		t.Error("a directory with files of the user was cleared")
	}
	if _, err := os.Stat(d.File("thesis.txt")); err != nil {
		t.Error(err)
	}
}

func TestClearDeletesOnlyFilesOfDevcluster(t *testing.T) {
	d := prepared(t)
	for _, name := range []string{"etcd/member/db", "pki/ca.crt", "logs/etcd.log", "logs/etcd.log.1", "port", "notes.txt", "logs/my.txt", "mine/x"} {
		if err := os.MkdirAll(filepath.Dir(d.File(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d.File(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := d.Clear()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"logs/my.txt", "mine", "notes.txt"}, kept); diff != "" {
		t.Errorf("reported as kept (-want +got):\n%s", diff)
	}
	var left []string
	err = filepath.WalkDir(d.Path, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			left = append(left, strings.TrimPrefix(path, d.Path+"/"))
		}
		return err
	})
	if diff := cmp.Diff([]string{markerName, "logs/my.txt", "mine/x", "notes.txt"}, left); diff != "" || err != nil {
		t.Errorf("left in the directory, %v (-want +got):\n%s", err, diff)
	}
}

func TestAtRejectsAnEmptyPath(t *testing.T) {
	if d, err := At(""); err == nil {
		t.Errorf("At(\"\") = %s, want an error", d.Path)
	}
}

func TestLock(t *testing.T) {
	d := prepared(t)
	if locked, err := d.Locked(); err != nil || locked {
		t.Errorf("locked before Lock: %t, %v", locked, err)
	}
	file, stale, err := d.Lock()
	if err != nil || stale != nil {
		t.Fatalf("stale %v, error %v", stale, err)
	}
	if locked, err := d.Locked(); err != nil || !locked {
		t.Errorf("locked after Lock: %t, %v", locked, err)
	}
	if err := d.WriteState(State{PID: os.Getpid(), Started: time.Now()}); err != nil {
		t.Fatal(err)
	}
	var running *RunningError
	if _, _, err := d.Lock(); !errors.As(err, &running) || running.State.PID != os.Getpid() {
		t.Errorf("second Lock: error %v, want RunningError", err)
	}
	// If the lock is released but the state is still there, the state is stale.
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
		t.Errorf("second RemoveState: %v", err)
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
		t.Errorf("Nearest = %v in a directory without a data directory", got)
	}
}
