package guard

import (
	"errors"
	"fmt"
	"os"
)

// Lifeline is a pipe that nothing is ever written to. Its write end is held by this process alone, so whoever reads
// it learns of the end of this process, whatever the end was: also one that no program can answer to.
type Lifeline struct {
	read, write *os.File
}

// NewLifeline opens a lifeline. Both ends are close-on-exec: a child gets the read end only by being handed it, and
// no child ever gets the write end.
func NewLifeline() (*Lifeline, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open the pipe that ends the programs beneath this one: %w", err)
	}
	return &Lifeline{read: read, write: write}, nil
}

// Close ends all that hangs on the lifeline.
func (l *Lifeline) Close() error {
	return errors.Join(l.write.Close(), l.read.Close())
}
