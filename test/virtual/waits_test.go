package virtual_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/einmal-operators/einmal"
	"github.com/einmal-operators/einmal/einmaltest"
	"github.com/einmal-operators/einmal/test/fixture"
)

// The time of the next attempt is in the record: a restart neither brings it forward nor puts it off.
func TestARestartDoesNotShortenAWait(t *testing.T) {
	for name, answer := range map[string]error{
		"a failure that names the time": einmal.RetryAfter(time.Hour, errors.New("not yet")), "a wait": einmal.RequeueAfter(time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			make := func(_ context.Context, _ *einmal.Change[fixture.Widget], ran *fixture.Trail) error {
				return errors.Join(ran.Run("make"), answer)
			}
			stepping(t, make, func(w *einmaltest.World, ran *fixture.Trail) {
				w.AllowUnfinished("make")
				w.Advance(30 * time.Minute)
				w.Restart()
				w.Advance(29 * time.Minute)
				expectRan(w, ran, "make")
				w.Advance(2 * time.Minute)
				expectRan(w, ran, "make", "make")
			})
		})
	}
}

// A handler that asks to be called again at once is called at most ten times a second.
func TestRetryAfterHasAFloor(t *testing.T) {
	const enough = 15
	for name, answer := range map[string]error{
		"a failure": einmal.RetryAfter(0, errors.New("not yet")), "a wait": einmal.RequeueAfter(-time.Second), "short": einmal.RetryAfter(time.Millisecond, errors.New("not yet")),
	} {
		t.Run(name, func(t *testing.T) {
			var first, last time.Time
			make := func(_ context.Context, _ *einmal.Change[fixture.Widget], ran *fixture.Trail) error {
				if last = time.Now(); first.IsZero() {
					first = last
				}
				if err := ran.Run("make"); err != nil || len(ran.All()) == enough {
					return err
				}
				return answer
			}
			stepping(t, make, func(w *einmaltest.World, ran *fixture.Trail) {
				w.Advance(10 * time.Second)
				if took := last.Sub(first); len(ran.All()) != enough || took < (enough-1)*100*time.Millisecond {
					w.Errorf("%d calls in %s, want %d and at most ten in a second", len(ran.All()), took, enough)
				}
			})
		})
	}
}
