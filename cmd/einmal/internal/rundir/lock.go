package rundir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// lock is a locked file. The operating system releases the lock when the process exits, even if it is killed.
type lock struct {
	file *os.File
}

// heldError reports that another process holds a lock.
type heldError struct {
	pid int // 0 if unknown
}

func (e *heldError) Error() string { return "locked by process " + strconv.Itoa(e.pid) }

// acquire locks the file at path and writes the process ID to it. It returns *heldError if another process holds the
// lock.
func acquire(path string) (*lock, error) {
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) {
			held := &heldError{pid: readPID(file)}
			_ = file.Close()
			return nil, held
		}
		if err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !isAt(file, path) { // the previous holder has just removed the file
			_ = file.Close()
			continue
		}
		if err := writePID(file); err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
		return &lock{file: file}, nil
	}
}

// release removes the file and releases the lock.
func (l *lock) release() error {
	err := os.Remove(l.file.Name())
	if errors.Is(err, os.ErrNotExist) { // the whole directory was removed
		err = nil
	}
	return errors.Join(err, l.file.Close())
}

// isAt reports whether path still refers to the open file.
func isAt(file *os.File, path string) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(open, named)
}

func writePID(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(file *os.File) int {
	text, err := io.ReadAll(io.LimitReader(file, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
