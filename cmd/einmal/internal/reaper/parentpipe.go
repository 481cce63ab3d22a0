package reaper

import (
	"errors"
	"fmt"
	"os"
)

// ParentPipe is a pipe that nothing is ever written to. Only this process holds its write end, so readers see the end of
// the pipe when this process exits, even if it is killed by SIGKILL.
type ParentPipe struct {
	read, write *os.File
}

// NewParentPipe opens a pipe. Both ends are close-on-exec: a child inherits the read end only if it is passed explicitly,
// and never inherits the write end.
func NewParentPipe() (*ParentPipe, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open the pipe that stops child processes: %w", err)
	}
	return &ParentPipe{read: read, write: write}, nil
}

// Close closes the pipe, which stops all programs that depend on it.
func (p *ParentPipe) Close() error {
	return errors.Join(p.write.Close(), p.read.Close())
}
