// Package instance is about the data directory of a cluster: whose it is, who
// runs on it, and what is known about the one that does.
package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/einmal-operators/einmal/devcluster/internal/shell"
)

const (
	// DefaultName is the name of the data directory unless told otherwise.
	DefaultName = ".devcluster"

	markerName = "devcluster-data"
	lockName   = "lock"
	markerText = "This directory belongs to devcluster: \"devcluster up --fresh\" deletes the data of the cluster in it.\n"

	// dirMode keeps other users from the keys and from the socket of etcd.
	dirMode = 0o700

	// probeTime is how long a lock is tried for before it counts as taken: a
	// "devcluster status" holds it for an instant.
	probeTime = 300 * time.Millisecond
	// leaveTime is how long the components of a killed instance may take to
	// notice that their parent is gone.
	leaveTime = 5 * time.Second
	// minFree is the least free space to start with, in bytes. A new etcd takes
	// half of it.
	minFree = 256 << 20
)

// Dir is the data directory of a cluster.
type Dir struct {
	// Path is absolute.
	Path string
}

// RunningError reports that another process runs the cluster.
type RunningError struct {
	Dir   string
	State State
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("%s is in use: a devcluster runs on it since %s, process %d; "+
		"stop it with: devcluster down --data %s\nor choose another directory with --data",
		e.Dir, e.State.Started.Format(time.DateTime), e.State.PID, shell.Quote(e.Dir))
}

// At returns the directory at path, which need not exist. The empty path is an
// error: it is more likely an unset variable than the current directory.
func At(path string) (Dir, error) {
	if path == "" {
		return Dir{}, errors.New("data directory: the path is empty")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Dir{}, fmt.Errorf("data directory: %w", err)
	}
	return Dir{Path: abs}, nil
}

// File returns the path of something in the directory.
func (d Dir) File(elements ...string) string {
	return filepath.Join(append([]string{d.Path}, elements...)...)
}

// Ours tells whether the directory exists and was made by devcluster.
func (d Dir) Ours() bool {
	info, err := os.Stat(d.File(markerName))
	return err == nil && info.Mode().IsRegular()
}

// Prepare creates the directory, or checks that an existing one is ours, can be
// written to and has space left.
func (d Dir) Prepare() error {
	if err := os.MkdirAll(d.Path, dirMode); err != nil {
		return fmt.Errorf("data directory: %w; choose another one with --data", err)
	}
	if !d.Ours() {
		entries, err := os.ReadDir(d.Path)
		if err != nil {
			return fmt.Errorf("data directory: %w; choose another one with --data", err)
		}
		if len(entries) > 0 {
			return fmt.Errorf("%s has files in it that are not devcluster's (such as %s), "+
				"so it stays untouched: choose another directory with --data", d.Path, entries[0].Name())
		}
	}
	if err := os.Chmod(d.Path, dirMode); err != nil {
		return fmt.Errorf("data directory: %w; choose another one with --data", err)
	}
	if err := d.CheckSpace(); err != nil {
		return err
	}
	if err := os.WriteFile(d.File(markerName), []byte(markerText), 0o600); err != nil {
		return fmt.Errorf("data directory: %w; make it writable or choose another one with --data", err)
	}
	return nil
}

// CheckSpace reports an error when the disk is about to be full.
func (d Dir) CheckSpace() error {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(d.Path, &stat); err != nil {
		return fmt.Errorf("data directory %s: %w", d.Path, err)
	}
	free := stat.Bavail * uint64(stat.Bsize) //nolint:gosec // a block size is positive; its type differs by system
	if free < minFree {
		return fmt.Errorf("only %d MiB are free on the disk of %s, a cluster needs at least %d: "+
			"free some space or choose another directory with --data", free>>20, d.Path, minFree>>20)
	}
	return nil
}

// Lock takes the directory for this process. The returned file holds the lock
// for as long as it is open here or in a process that inherited it. stale is
// the state of an instance that ended without cleaning up, if there was one.
func (d Dir) Lock() (file *os.File, stale *State, err error) {
	file, err = os.OpenFile(d.File(lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("data directory: %w", err)
	}
	start := time.Now()
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
		}
		state, errRead := d.ReadState()
		limit := probeTime
		if errRead != nil || !alive(state.PID) {
			// Its owner is just starting, or it is killed and its components
			// have yet to notice.
			limit = leaveTime
		}
		if time.Since(start) > limit {
			return nil, nil, errors.Join(&RunningError{Dir: d.Path, State: state}, file.Close())
		}
		time.Sleep(20 * time.Millisecond)
	}
	if state, err := d.ReadState(); err == nil {
		stale = &state
	}
	return file, stale, nil
}

// Locked tells whether a process, the instance or one of its components, holds
// the directory.
func (d Dir) Locked() (bool, error) {
	file, err := os.OpenFile(d.File(lockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // lets go of the lock as well
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
