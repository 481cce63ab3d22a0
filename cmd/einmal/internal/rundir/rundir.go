// Package rundir provides the directory of a single run of "einmal dev". It holds the operator's program, kubeconfig and
// token, is shared with no other run, and is removed when the run ends.
package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	runPrefix      = "run-"      // prefix of the names of run directories
	operatorPrefix = "operator-" // prefix of the names of the lock files of operators
	lockSuffix     = ".lock"     // suffix of the names of lock files
)

// BusyError reports that another process runs the same operator in the same devcluster.
type BusyError struct {
	// Operator is the path of the operator's sources. PID is the other process, or 0 if it is unknown.
	Operator string
	PID      int
}

// Error names the operator and the other process, and explains how to stop it.
func (e *BusyError) Error() string {
	if e.PID == 0 { // the other process has just started
		return fmt.Sprintf("einmal dev runs already for %s in this devcluster\nremedy: stop it first, with Ctrl-C in its terminal", e.Operator)
	}
	return fmt.Sprintf("einmal dev runs already for %s in this devcluster (process %d)\n"+
		"remedy: stop that process first, with Ctrl-C in its terminal or with: kill %d", e.Operator, e.PID, e.PID)
}

// Dir holds the files of one run. Only this user can read them.
type Dir struct {
	// Binary is the path of the running program, Next that of the latest build. They have the same base name.
	Binary, Next string
	// Kubeconfig and Token are the paths of the operator's credentials.
	Kubeconfig, Token string

	dir           string
	operator, own *lock
}

// Open creates the directory of a new run below root. operator is the absolute path of the operator's sources. Until
// Close, Open holds a lock for it in root, and returns *BusyError if another process holds that lock. It also removes the
// run directories that killed processes left below root.
func Open(root, operator string) (*Dir, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("create a directory for the operator's program: %w; choose another one with --data", err)
	}
	sum := sha256.Sum256([]byte(operator))
	held, err := acquire(filepath.Join(root, operatorPrefix+hex.EncodeToString(sum[:8])+lockSuffix))
	if busy := (*heldError)(nil); errors.As(err, &busy) {
		return nil, &BusyError{Operator: operator, PID: busy.pid}
	}
	if err != nil {
		return nil, fmt.Errorf("lock the operator %s: %w", operator, err)
	}
	d := &Dir{operator: held}
	if err := d.fill(root, filepath.Base(operator)); err != nil {
		return nil, errors.Join(err, held.release())
	}
	return d, nil
}

// fill creates the directory of the run and sets its paths.
func (d *Dir) fill(root, name string) error {
	if err := d.reserve(root); err != nil {
		return fmt.Errorf("create a directory for the operator's program: %w; choose another one with --data", err)
	}
	d.Binary, d.Next = filepath.Join(d.dir, "bin", name), filepath.Join(d.dir, "next", name)
	d.Kubeconfig, d.Token = filepath.Join(d.dir, "kubeconfig"), filepath.Join(d.dir, "token")
	for _, dir := range []string{d.dir, filepath.Dir(d.Binary), filepath.Dir(d.Next)} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return errors.Join(fmt.Errorf("create a directory for the operator's program: %w", err), d.remove())
		}
	}
	sweep(root)
	return nil
}

// reserve chooses the name of a new directory and locks it.
func (d *Dir) reserve(root string) error {
	for {
		file, err := os.CreateTemp(root, runPrefix+"*"+lockSuffix)
		if err != nil {
			return err
		}
		_ = file.Close()
		own, err := acquire(file.Name())
		if held := (*heldError)(nil); errors.As(err, &held) {
			continue // a concurrent sweep has locked the new file because it looks abandoned
		}
		if err != nil {
			return err
		}
		d.own, d.dir = own, strings.TrimSuffix(file.Name(), lockSuffix)
		return nil
	}
}

// sweep removes the directories of killed runs. It ignores errors because the next run retries.
func sweep(root string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, entry := range entries {
		dir, ok := strings.CutSuffix(filepath.Join(root, entry.Name()), lockSuffix)
		if !ok || !strings.HasPrefix(entry.Name(), runPrefix) {
			continue
		}
		if left, err := acquire(dir + lockSuffix); err == nil {
			_ = os.RemoveAll(dir)
			_ = left.release()
		}
	}
}

// Swap puts the latest build in the place of Binary. The build also stays at Next, so that the next "go build" need not
// link if nothing has changed.
func (d *Dir) Swap() error {
	link := d.Binary + ".link"
	_ = os.Remove(link) // an interrupted swap may have left it
	if err := os.Link(d.Next, link); err != nil {
		return os.Rename(d.Next, d.Binary) // the file system has no hard links
	}
	if err := os.Rename(link, d.Binary); err != nil {
		return err
	}
	_ = os.Remove(link) // rename(2) keeps it if both names already refer to the same file
	return nil
}

// Close removes all files of the run and releases the locks.
func (d *Dir) Close() error {
	if err := errors.Join(d.remove(), d.operator.release()); err != nil {
		return fmt.Errorf("remove the files of this run: %w", err)
	}
	return nil
}

func (d *Dir) remove() error {
	return errors.Join(os.RemoveAll(d.dir), d.own.release())
}
