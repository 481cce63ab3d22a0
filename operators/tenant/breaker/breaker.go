// Package breaker keeps callers from waiting for a server that does not answer. After a call that waited in vain, the calls of the next seconds
// fail at once; then one call tries again while the others go on failing.
package breaker

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// Cooldown is how long calls fail at once after one that waited in vain.
	Cooldown = 5 * time.Second
	// slow is how long a failed call must have taken to open the breaker. A connection that is refused at once delays no caller.
	slow = time.Second
)

// ErrOpen is the error of a call that was not made because an earlier one got no answer.
var ErrOpen = errors.New("it did not answer a moment ago; it is tried again within seconds")

// Breaker guards one server. Its zero value lets calls through. Its methods may be called at the same time.
type Breaker struct {
	mu sync.Mutex
	// until is the end of the cooldown; the zero time if the last call got an answer.
	until time.Time
	// trying is true while one call tries whether the server answers again.
	trying bool
}

// Do makes a call to the server, or returns ErrOpen at once. The function unanswered reports whether an error of the call means that the server
// gave no answer; an error by which the server answered closes the breaker, like success. A call whose ctx was canceled changes nothing.
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

// Open reports whether the cooldown lasts. A call that has waited for its turn inside Do asks before it goes on, and returns ErrOpen.
func (b *Breaker) Open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Before(b.until)
}

// enter reports whether a call may be made. The first one after the cooldown tries for all others.
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
