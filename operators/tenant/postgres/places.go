package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// hangTime is how long a failed connection beside the pool must have taken to count as a hang of its database.
	hangTime = 4 * time.Second
	// firstHangWait is how long no further connection to a database is opened after it hung. The wait doubles with each hang up to longestHangWait.
	firstHangWait, longestHangWait = 5 * time.Second, 5 * time.Minute
	// suspectTime is how long a database that hung is suspect, and suspectWait how long a connection to one waits for another one to end.
	suspectTime = 10 * time.Minute
	suspectWait = time.Second
)

// places limits the connections beside the pool. A tenant can make each connection to its database hang, for example with VACUUM FULL pg_class behind
// an open transaction. So the databases that hung share one place, which takes none of the others' places, and each has its own backoff.
type places struct {
	trusted, suspect chan struct{}

	mu    sync.Mutex
	hangs map[string]hang
}

// hang says when connections to a database hung last, and how long to wait before the next one.
type hang struct {
	at   time.Time
	wait time.Duration
}

func newPlaces(number int32) *places {
	return &places{trusted: make(chan struct{}, number), suspect: make(chan struct{}, 1), hangs: map[string]hang{}}
}

// enter takes a place for a connection to a database, and returns a function that gives it back. If the database hung and its wait has not ended, or if
// another suspect database keeps the place, it returns ErrHangs.
func (p *places) enter(ctx context.Context, database string) (leave func(), err error) {
	last, suspect := p.last(database)
	if !suspect {
		return take(ctx, p.trusted)
	}
	if wait := time.Until(last.at.Add(last.wait)); wait > 0 {
		return nil, hangsError{database, fmt.Errorf("the next attempt is possible in %s", wait.Round(time.Second))}
	}
	waiting, cancel := context.WithTimeoutCause(ctx, suspectWait, hangsError{database, errors.New("another database that hung is being tried")})
	defer cancel()
	return take(waiting, p.suspect)
}

// insist is enter for what ends the sessions that make a database hang, so that it does not keep its place for long. One that has a place can need another
// one, to roll back a prepared transaction in the same database. So it does not use the single place of suspect databases.
func (p *places) insist(ctx context.Context) (leave func(), err error) { return take(ctx, p.trusted) }

func take(ctx context.Context, places chan struct{}) (leave func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// last returns the last hang of a database, and reports whether it is suspect.
func (p *places) last(database string) (hang, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.hangs[database]
	if known && time.Since(last.at) > suspectTime {
		delete(p.hangs, database)
		return hang{}, false
	}
	return last, known
}

// note records how a connection to a database ended: after how long, and with which error. It returns the error, as ErrHangs if the database hung.
func (p *places) note(database string, took time.Duration, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.hangs[database]
	switch {
	case err == nil && known:
		p.hangs[database] = hang{at: last.at} // Still suspect, without a wait.
	case err != nil && took >= hangTime:
		p.hangs[database] = hang{at: time.Now(), wait: min(max(2*last.wait, firstHangWait), longestHangWait)}
		return hangsError{database, err}
	}
	return err
}

// hangsError is the error of a connection that hung, or that was not opened because an earlier one hung.
type hangsError struct {
	database string
	cause    error
}

func (h hangsError) Error() string {
	return fmt.Sprintf("%v: %s; end the sessions that hold or wait for locks on its system catalogs (pg_locks), such as VACUUM FULL, "+
		"and reset large settings: %v", ErrHangs, h.database, h.cause)
}

func (h hangsError) Unwrap() []error { return []error{ErrHangs, h.cause} }
