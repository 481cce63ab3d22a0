// Package workplace keeps the files of one run of "einmal dev" (the operator's program, kubeconfig and token) apart from
// the files of every other run, and removes them when the run ends.
package workplace

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
	runPrefix  = "run-"  // begins the names of the directories that belong to one run each
	lockSuffix = ".lock" // ends the name of the file that locks such a directory
)

// Key identifies what a run works on. Two runs with equal keys cannot work at the same time.
type Key struct {
	// Operator is the absolute path of the operator's sources.
	Operator string
	// Cluster identifies the cluster, whatever the kubeconfig calls it.
	Cluster string
}

// file returns a file name for the key.
func (k Key) file() string {
	sum := sha256.Sum256([]byte(k.Operator + "\x00" + k.Cluster))
	return filepath.Base(k.Operator) + "-" + hex.EncodeToString(sum[:8]) + lockSuffix
}

// BusyError reports that another run works on the same operator in the same cluster.
type BusyError struct {
	// Operator is the path of the operator's sources, PID the other process; 0 if unknown.
	Operator string
	PID      int
}

// Error names the operator and the other process, and says how to stop it.
func (e *BusyError) Error() string {
	if e.PID == 0 { // it has just started
		return fmt.Sprintf("einmal dev runs already for %s in this cluster\nremedy: stop it first, with Ctrl-C in its terminal", e.Operator)
	}
	return fmt.Sprintf("einmal dev runs already for %s in this cluster (process %d)\n"+
		"remedy: stop that process first, with Ctrl-C in its terminal or with: kill %d", e.Operator, e.PID, e.PID)
}

// Place holds the files of one run. Only this user can read them.
type Place struct {
	// Binary is the path of the program that runs, Next of the program that was built last. They have the same name.
	Binary, Next string
	// Kubeconfig and Token are the paths of the operator's credentials.
	Kubeconfig, Token string
	// Admin is the path for a kubeconfig with the user's own rights, which exists only while it is needed.
	Admin string

	dir      string
	key, own *lock
}

// Open makes the files of a new run in a new directory below root. It holds a lock for key in the directory locks until
// Close, and returns *BusyError while another process holds that lock. It also removes the directories below root that
// killed processes left behind.
func Open(root, locks string, key Key) (*Place, error) {
	for _, dir := range []string{root, locks} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create a directory for the operator's program (--data names another one): %w", err)
		}
	}
	held, err := acquire(filepath.Join(locks, key.file()))
	if busy := (*heldError)(nil); errors.As(err, &busy) {
		return nil, &BusyError{Operator: key.Operator, PID: busy.pid}
	}
	if err != nil {
		return nil, fmt.Errorf("lock the operator %s: %w", key.Operator, err)
	}
	p := &Place{key: held}
	if err := p.fill(root, filepath.Base(key.Operator)); err != nil {
		return nil, errors.Join(err, held.release())
	}
	return p, nil
}

// fill makes the directory of the run.
func (p *Place) fill(root, name string) error {
	if err := p.reserve(root); err != nil {
		return fmt.Errorf("create a directory for the operator's program (--data names another one): %w", err)
	}
	p.Binary, p.Next = filepath.Join(p.dir, "bin", name), filepath.Join(p.dir, "next", name)
	p.Kubeconfig, p.Token = filepath.Join(p.dir, "kubeconfig"), filepath.Join(p.dir, "token")
	p.Admin = filepath.Join(p.dir, "admin")
	for _, dir := range []string{p.dir, filepath.Dir(p.Binary), filepath.Dir(p.Next)} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return errors.Join(fmt.Errorf("create a directory for the operator's program: %w", err), p.remove())
		}
	}
	sweep(root)
	return nil
}

// reserve picks the name of a directory that does not exist, and locks it.
func (p *Place) reserve(root string) error {
	for {
		file, err := os.CreateTemp(root, runPrefix+"*"+lockSuffix)
		if err != nil {
			return err
		}
		_ = file.Close()
		own, err := acquire(file.Name())
		if held := (*heldError)(nil); errors.As(err, &held) {
			continue // another process sweeps, and has taken the new file for a leftover
		}
		if err != nil {
			return err
		}
		p.own, p.dir = own, strings.TrimSuffix(file.Name(), lockSuffix)
		return nil
	}
}

// sweep removes the directories of runs that were killed. It ignores what it cannot remove: the next run tries again.
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

// Swap makes the program that was built last the one that runs. It also stays at Next, where the next build finds it and
// has nothing to link if nothing has changed.
func (p *Place) Swap() error {
	link := p.Binary + ".link"
	_ = os.Remove(link) // an interrupted swap may have left it
	if err := os.Link(p.Next, link); err != nil {
		return os.Rename(p.Next, p.Binary) // the file system has no hard links
	}
	if err := os.Rename(link, p.Binary); err != nil {
		return err
	}
	_ = os.Remove(link) // rename(2) leaves it when both names are the same file already
	return nil
}

// Close removes all files of the run and gives the locks up.
func (p *Place) Close() error {
	if err := errors.Join(p.remove(), p.key.release()); err != nil {
		return fmt.Errorf("remove the files of this run: %w", err)
	}
	return nil
}

func (p *Place) remove() error {
	return errors.Join(os.RemoveAll(p.dir), p.own.release())
}
