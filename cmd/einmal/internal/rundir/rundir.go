// Package rundir provides the directory of a single run of "einmal dev". It holds the operator's program, kubeconfig and
// token, is shared with no other run, and is removed when the run ends.
package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	runPrefix = "run-" // prefix of the names of run directories
	pidName   = "pid"  // name of the file with the ID of the process that runs, which holds a lock on it
	lockName  = "lock" // name of the file whose lock is held while a run directory is created or removed
)

// Dir holds the files of one run. Only this user can read them.
type Dir struct {
	// Binary is the path of the running program, Next that of the latest build. They have the same base name.
	Binary, Next string
	// Kubeconfig and Token are the paths of the operator's credentials.
	Kubeconfig, Token string

	root, dir string
	held      *os.File // the file pidName, locked
}

// Open creates the directory of a new run below root. operator is the absolute path of the operator's sources. Until Close,
// Open returns an error for the same operator in other processes. It also removes the run directories that killed processes
// left below root.
func Open(root, operator string) (*Dir, error) {
	sum, name := sha256.Sum256([]byte(operator)), filepath.Base(operator)
	dir := filepath.Join(root, runPrefix+hex.EncodeToString(sum[:8]))
	d := &Dir{
		root: root, dir: dir,
		Binary: filepath.Join(dir, "bin", name), Next: filepath.Join(dir, "next", name),
		Kubeconfig: filepath.Join(dir, "kubeconfig"), Token: filepath.Join(dir, "token"),
	}
	err := os.MkdirAll(root, 0o700)
	if err == nil {
		err = alone(root, func() error {
			sweep(root)
			return d.create()
		})
	}
	if errors.Is(err, fs.ErrExist) {
		return nil, d.busy(operator)
	}
	if err != nil {
		return nil, fmt.Errorf("create a directory for the operator's program: %w; choose another one with --data", err)
	}
	return d, nil
}

// busy returns an error that names the other process that runs the operator, and explains how to stop it.
func (d *Dir) busy(operator string) error {
	pid, err := os.ReadFile(filepath.Join(d.dir, pidName))
	if err != nil {
		return fmt.Errorf("find the process that runs %s: %w", operator, err)
	}
	return fmt.Errorf("einmal dev runs already for %s in this devcluster (process %s)\n"+
		"remedy: stop that process first, with Ctrl-C in its terminal or with: kill %[2]s", operator, pid)
}

// create creates the directories and takes the lock. It returns fs.ErrExist if another process holds the lock.
func (d *Dir) create() error {
	err := os.Mkdir(d.dir, 0o700)
	if err != nil {
		return err
	}
	if d.held, err = lock(filepath.Join(d.dir, pidName), syscall.LOCK_NB); err == nil {
		_, err = d.held.WriteString(strconv.Itoa(os.Getpid()))
	}
	for _, dir := range []string{filepath.Dir(d.Binary), filepath.Dir(d.Next)} {
		err = errors.Join(err, os.Mkdir(dir, 0o700))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(d.dir))
	}
	return nil
}

// sweep removes the directories of killed runs. It ignores errors because the next run retries.
func sweep(root string) {
	entries, _ := os.ReadDir(root)
	for _, entry := range entries {
		dir := filepath.Join(root, entry.Name())
		if !strings.HasPrefix(entry.Name(), runPrefix) {
			continue
		}
		if left, err := lock(filepath.Join(dir, pidName), syscall.LOCK_NB); err == nil {
			_ = os.RemoveAll(dir)
			_ = left.Close()
		}
	}
}

// alone calls use while no other process creates or removes a run directory.
func alone(root string, use func() error) error {
	file, err := lock(filepath.Join(root, lockName), 0)
	if err != nil {
		return err
	}
	return errors.Join(use(), file.Close())
}

// lock locks a file. The operating system releases the lock when the file is closed or the process exits, even if it is
// killed.
func lock(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|how); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	return file, nil
}

// Swap puts the latest build in the place of Binary. The build also stays at Next, so that the next "go build" need not
// link if nothing has changed.
func (d *Dir) Swap() error {
	_ = os.Remove(d.Binary) // there is none at first
	if os.Link(d.Next, d.Binary) == nil {
		return nil
	}
	return os.Rename(d.Next, d.Binary) // the file system has no hard links
}

// Close removes all files of the run and releases the lock.
func (d *Dir) Close() error {
	err := alone(d.root, func() error { return os.RemoveAll(d.dir) })
	if errors.Is(err, fs.ErrNotExist) { // all of root was removed
		err = nil
	}
	if err := errors.Join(err, d.held.Close()); err != nil {
		return fmt.Errorf("remove the files of this run: %w", err)
	}
	return nil
}
