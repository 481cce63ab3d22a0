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
	// workers is how many tenants are reconciled concurrently, and share how many of them may belong to one backend. So a slow or failed
	// backend does not block the tenants of other backends.
	workers = 64
	share   = 16
	// shortestTurn is the minimum wait of a tenant whose backend has used its share.
	shortestTurn = 100 * time.Millisecond
)

// turns counts the workers that a backend uses. Its zero value is ready to use.
type turns struct {
	mu   sync.Mutex
	busy int
	// took is a moving average of the duration of a reconciliation.
	took time.Duration
	// last is when the most recently deferred tenant gets its turn.
	last time.Time
}

// take reports whether a worker is available. If not, it returns how long to wait. Waiting tenants return one after the other, about as
// fast as reconciliations end.
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

// end returns a worker after a reconciliation of the given duration.
func (s *turns) end(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	s.took += (took - s.took) / share
}

// turnError is the error for a tenant whose backend has used its share of the workers.
type turnError struct{ wait time.Duration }

func (e turnError) Error() string {
	return fmt.Sprintf("the backend already has %d tenants in progress; retry in %s", share, e.wait)
}

// turnOf returns how long to wait if an error is a turnError.
func turnOf(err error) (time.Duration, bool) {
	full, ok := errors.AsType[turnError](err)
	return full.wait, ok
}

// work is use for a reconciliation. It returns a turnError if the backend has used its share of the workers.
func (s *backends) work(ctx context.Context, api client.Client, name string) (*backend, func(), error) {
	held, release, err := s.use(ctx, api, name)
	if err != nil {
		return nil, nil, err
	}
	return held.work(release)
}

// work takes a worker for a backend that is in use. The returned function returns both. It returns a turnError if the backend has used its
// share.
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
