// Package instance manages the data directory of a cluster: its ownership, its
// lock, and the state of the instance that runs on it.
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
	// DefaultName is the default name of the data directory.
	DefaultName = ".devcluster"

	markerName = "devcluster-data"
	lockName   = "lock"
	markerText = "This directory belongs to devcluster: \"devcluster up --fresh\" deletes the data of the cluster in it.\n"

	// dirMode prevents other users from reading the keys and from accessing the
	// socket of etcd.
	dirMode = 0o700

	// probeTime is how long to retry a lock before it counts as held by another
	// instance: "devcluster status" holds it briefly.
	probeTime = 300 * time.Millisecond
	// leaveTime is how long the components of a killed instance may take to exit.
	leaveTime = 5 * time.Second
	// minFree is the minimum free disk space for a start, in bytes. A new etcd
	// uses half of it.
	minFree = 256 << 20
)

// Dir is the data directory of a cluster.
type Dir struct {
	// Path is absolute.
	Path string
}

// RunningError reports that a cluster is already running on the data directory.
type RunningError struct {
	Dir   string
	State State
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("data directory %s is in use: a devcluster has been running on it since %s (process %d)\n"+
		"remedy: stop it with: devcluster down --data %s\n        or choose another directory with --data",
		e.Dir, e.State.Started.Format(time.DateTime), e.State.PID, shell.Quote(e.Dir))
}

// At returns the directory at path, which need not exist. It rejects an empty path,
// which usually comes from an unset shell variable.
func At(path string) (Dir, error) {
	if path == "" {
		return Dir{}, errors.New("find data directory: the path is empty")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Dir{}, fmt.Errorf("find data directory: %w", err)
	}
	return Dir{Path: abs}, nil
}

// File returns the path of a file in the directory.
func (d Dir) File(elements ...string) string {
	return filepath.Join(append([]string{d.Path}, elements...)...)
}

// Ours reports whether the directory exists and was created by devcluster.
func (d Dir) Ours() bool {
	info, err := os.Stat(d.File(markerName))
	return err == nil && info.Mode().IsRegular()
}

// Prepare creates the directory, or checks that an existing directory was created
// by devcluster or is empty. It also checks that the directory is writable and has
// enough free space.
func (d Dir) Prepare() error {
	if err := os.MkdirAll(d.Path, dirMode); err != nil {
		return fmt.Errorf("create data directory: %w; choose another one with --data", err)
	}
	if !d.Ours() {
		entries, err := os.ReadDir(d.Path)
		if err != nil {
			return fmt.Errorf("read data directory: %w; choose another one with --data", err)
		}
		if len(entries) > 0 {
			return fmt.Errorf("use data directory %s: it contains files that devcluster did not create (such as %s); "+
				"choose another directory with --data", d.Path, entries[0].Name())
		}
	}
	if err := os.Chmod(d.Path, dirMode); err != nil {
		return fmt.Errorf("set the mode of the data directory: %w; choose another one with --data", err)
	}
	if err := d.CheckSpace(); err != nil {
		return err
	}
	if err := os.WriteFile(d.File(markerName), []byte(markerText), 0o600); err != nil {
		return fmt.Errorf("write to the data directory: %w; make it writable or choose another one with --data", err)
	}
	return nil
}

// CheckSpace returns an error if there is not enough free disk space for a cluster.
func (d Dir) CheckSpace() error {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(d.Path, &stat); err != nil {
		return fmt.Errorf("check the free disk space of %s: %w", d.Path, err)
	}
	free := stat.Bavail * uint64(stat.Bsize) //nolint:gosec // a block size is positive; its type differs by system
	if free < minFree {
		return fmt.Errorf("check the free disk space of %s: must be at least %d MiB, got %d MiB; "+
			"free some space or choose another directory with --data", d.Path, minFree>>20, free>>20)
	}
	return nil
}

// Lock locks the directory. The lock is held as long as the returned file is open
// in this process or in a process that inherited it. stale is the state of an
// instance that did not exit cleanly, or nil.
func (d Dir) Lock() (file *os.File, stale *State, err error) {
	file, err = os.OpenFile(d.File(lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("lock data directory: %w", err)
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
			// The holder has just started, or it was killed and its components
			// have not exited yet.
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

// Locked reports whether an instance or one of its components holds the lock.
func (d Dir) Locked() (bool, error) {
	file, err := os.OpenFile(d.File(lockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // also releases the lock
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
