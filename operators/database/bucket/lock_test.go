package bucket

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestUploadWaitsForTheLock(t *testing.T) {
	s := newServer(t)
	limits := testLimits()
	limits.lockWait = time.Minute
	b, _ := openWith(t, testSettings(s.url), limits)
	folder := t.TempDir()
	makeBackup(t, folder, first, 100)
	unlock, err := b.lock(t.Context(), filepath.Join(folder, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- b.Upload(t.Context(), folder, Retention{Count: 1}, now()) }()
	select {
	case err := <-ended:
		t.Errorf("it ended while the lock was held: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if _, requests := s.counted(); len(requests) != 0 {
		t.Errorf("requests while the lock was held: %s", requests)
	}
	unlock()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	wantComplete(t, b, first)
}

func TestUploadGivesUpTheLock(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	folder := t.TempDir()
	path := filepath.Join(folder, "lock")
	unlock, err := b.lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	wantError(t, b.Upload(t.Context(), folder, Retention{Count: 1}, now()), "lock "+path, "a backup has been running for 50ms")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Upload(ctx, folder, Retention{Count: 1}, now()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestUploadReleasesTheLock(t *testing.T) {
	s := newServer(t)
	b, _ := s.open(t)
	folder := t.TempDir()
	for range 2 {
		upload(t, b, folder)
	}
	if info, err := os.Stat(filepath.Join(folder, "lock")); err != nil || info.Size() != 0 {
		t.Errorf("lock %v: %v", info, err)
	}
	wantError(t, b.Upload(t.Context(), filepath.Join(folder, "missing"), Retention{Count: 1}, now()), "open the lock of the backups")
}
