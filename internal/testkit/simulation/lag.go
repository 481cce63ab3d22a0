package simulation

import (
	"io"
	"sync"
	"time"
)

// lagging is the stream of a watch on which everything arrives late: what a client caches from it is stale.
type lagging struct {
	io.ReadCloser
	lag    time.Duration
	once   sync.Once
	closed chan struct{}
}

func newLagging(stream io.ReadCloser, lag time.Duration) *lagging {
	return &lagging{ReadCloser: stream, lag: lag, closed: make(chan struct{})}
}

// Read hands on what has arrived, after the lag.
func (l *lagging) Read(into []byte) (int, error) {
	n, err := l.ReadCloser.Read(into)
	late := time.NewTimer(l.lag)
	defer late.Stop()
	select {
	case <-late.C:
	case <-l.closed:
	}
	return n, err
}

// Close ends the stream at once.
func (l *lagging) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.ReadCloser.Close()
}
