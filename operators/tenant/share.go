package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// workers is how many tenants are looked at at once, and share how many of them may be of one backend: a backend that is slow or down
	// leaves the other workers to the other backends.
	workers = 64
	share   = 16
	// shortestTurn is how long a tenant waits at least if its backend has all of its share.
	shortestTurn = 100 * time.Millisecond
)

// turns is the share that a backend has of the workers. Its zero value has none in use.
type turns struct {
	mu   sync.Mutex
	busy int
	// took is about how long a look takes.
	took time.Duration
	// last is when the turn comes of the tenant that was sent away last.
	last time.Time
}

// take reports whether a worker may be used now, and else how long to wait. Tenants that wait come back one after the other, about as fast as
// looks end.
func (s *turns) take(now time.Time) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy < share {
		s.busy++
		return 0, true
	}
	next := now.Add(max(s.took, shortestTurn))
	if s.last.After(next) {
		next = s.last
	}
	s.last = next.Add(max(s.took/share, time.Millisecond))
	return s.last.Sub(now), false
}

// end gives a worker back after a look that took some time.
func (s *turns) end(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	s.took += (took - s.took) / share
}

// turnError is the error of a tenant whose backend has all of its share.
type turnError struct{ wait time.Duration }

func (e turnError) Error() string {
	return fmt.Sprintf("the backend has %d tenants at work already; it is the turn of this one in %s", share, e.wait)
}

// turnOf returns how long to wait if an error is a turnError.
func turnOf(err error) (time.Duration, bool) {
	full, ok := errors.AsType[turnError](err)
	return full.wait, ok
}

// work is use for a look at a tenant. It is a turnError if the backend has all of its share of the workers.
func (s *backends) work(ctx context.Context, api client.Client, name string) (*backend, func(), error) {
	held, release, err := s.use(ctx, api, name)
	if err != nil {
		return nil, nil, err
	}
	return held.work(release)
}

// work takes a worker for a backend that is in use, and gives it back with the use. It is a turnError if the backend has all of its share.
func (b *backend) work(release func()) (*backend, func(), error) {
	began := time.Now()
	wait, ok := b.turns.take(began)
	if !ok {
		release()
		return nil, nil, turnError{wait}
	}
	return b, func() {
		b.turns.end(time.Since(began))
		release()
	}, nil
}
