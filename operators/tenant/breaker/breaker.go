// Package breaker is a circuit breaker for servers that do not answer. After a call that timed out, further calls fail immediately for some
// seconds. Then one call tests the server while the others still fail.
package breaker

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// Cooldown is how long calls fail immediately after a call without an answer.
	Cooldown = 5 * time.Second
	// slow is how long a failed call must have taken to open the breaker. A connection that is refused immediately does not delay callers.
	slow = time.Second
)

// ErrOpen is the error of a call that was not made because an earlier call got no answer.
var ErrOpen = errors.New("the server did not answer a moment ago; will retry within seconds")

// Breaker guards one server. Its zero value is closed. It is safe for concurrent use.
type Breaker struct {
	mu sync.Mutex
	// until is the end of the cooldown. It is zero if the last call got an answer.
	until time.Time
	// trying is true while one call tests whether the server answers again.
	trying bool
}

// Do calls the server, or returns ErrOpen immediately. unanswered reports whether an error means that the server gave no answer. Any
// answer, even an error, closes the breaker. A call whose ctx was canceled does not change the breaker.
func (b *Breaker) Do(ctx context.Context, unanswered func(error) bool, call func() error) error {
	if !b.enter() {
		return ErrOpen
	}
	began := time.Now()
	err := call()
	switch {
	case errors.Is(err, ErrOpen), err != nil && errors.Is(ctx.Err(), context.Canceled):
		b.leave(func() {})
	case err == nil || !unanswered(err):
		b.leave(func() { b.until = time.Time{} })
	case time.Since(began) >= slow:
		b.leave(func() { b.until = time.Now().Add(Cooldown) })
	default:
		b.leave(func() {})
	}
	return err
}

// Open reports whether the cooldown is in progress. A call that waited inside Do, for example for a connection, uses it to return ErrOpen.
func (b *Breaker) Open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.until)
}

// enter reports whether a call may be made. After the cooldown one call tests the server for all others.
func (b *Breaker) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return true
	}
	if b.trying || time.Now().Before(b.until) {
		return false
	}
	b.trying = true
	return true
}

func (b *Breaker) leave(update func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	update()
}
