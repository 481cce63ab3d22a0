// Package breaker makes calls to a server fail immediately for some seconds after a call that timed out. Then one call tests the server while the
// others still fail. It tells gobreaker what a timeout is.
package breaker

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	// Cooldown is how long calls fail immediately after a call without an answer.
	Cooldown = 5 * time.Second
	// slow is how long a failed call must have taken to open the breaker. A connection that is refused immediately does not delay callers.
	slow = time.Second
)

// ErrOpen is the error of a call that was not made because an earlier call got no answer.
var ErrOpen = errors.New("the server did not answer a moment ago; will retry within seconds")

// Breaker guards one server. It is safe for concurrent use.
type Breaker = gobreaker.CircuitBreaker[struct{}]

// New returns a closed Breaker.
func New() *Breaker {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     Cooldown,
		ReadyToTrip: func(gobreaker.Counts) bool { return true },
		IsExcluded:  func(err error) bool { return errors.Is(err, context.Canceled) },
	})
}

// Do calls the server, or returns ErrOpen immediately. unanswered reports whether an error means that the server gave no answer. Any
// answer, even an error, closes the breaker. A call whose ctx was canceled does not change the breaker.
func Do(ctx context.Context, guard *Breaker, unanswered func(error) bool, call func() error) error {
	var err error
	_, counted := guard.Execute(func() (struct{}, error) {
		began := time.Now()
		err = call()
		switch {
		case err != nil && errors.Is(ctx.Err(), context.Canceled):
			return struct{}{}, context.Canceled
		case err == nil, !unanswered(err), time.Since(began) < slow:
			return struct{}{}, nil
		}
		return struct{}{}, err
	})
	if errors.Is(counted, gobreaker.ErrOpenState) || errors.Is(counted, gobreaker.ErrTooManyRequests) {
		return ErrOpen
	}
	return err
}
