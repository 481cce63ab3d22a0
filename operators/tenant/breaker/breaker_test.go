package breaker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/einmal-operators/einmal/operators/tenant/breaker"
)

var (
	errSilent   = errors.New("no answer")
	errAnswered = errors.New("the server refuses")
)

func silent(err error) bool { return errors.Is(err, errSilent) }

// after is a call that ends after a time.
func after(wait time.Duration, err error) func() error {
	return func() error {
		<-time.After(wait)
		return err
	}
}

func expect(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || want == nil && got != nil {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestCallsFailAtOnceAfterOneThatGotNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		guard := breaker.New()
		expect(t, "the first call", breaker.Do(t.Context(), guard, silent, after(5*time.Second, errSilent)), errSilent)
		began := time.Now()
		expect(t, "the second call", breaker.Do(t.Context(), guard, silent, after(5*time.Second, errSilent)), breaker.ErrOpen)
		if waited := time.Since(began); waited > 0 {
			t.Errorf("it waited for %s", waited)
		}
		<-time.After(breaker.Cooldown + time.Millisecond)
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		expect(t, "a call whose caller gives up", breaker.Do(canceled, guard, silent, after(5*time.Second, errSilent)), errSilent)
		trying := make(chan error)
		go func() { trying <- breaker.Do(t.Context(), guard, silent, after(5*time.Second, nil)) }()
		synctest.Wait()
		expect(t, "a call while one tries", breaker.Do(t.Context(), guard, silent, after(0, nil)), breaker.ErrOpen)
		expect(t, "the call that tries", <-trying, nil)
		expect(t, "a call after an answer", breaker.Do(t.Context(), guard, silent, after(0, nil)), nil)
	})
}

func TestAnAnswerKeepsTheBreakerClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		guard := breaker.New()
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		for name, call := range map[string]struct {
			ctx  context.Context //nolint:containedctx // It is a case of the table.
			wait time.Duration
			err  error
		}{
			"a slow refusal by the server": {t.Context(), time.Minute, errAnswered},
			"a connection refused at once": {t.Context(), 0, errSilent},
			"a caller that gave up":        {canceled, time.Minute, errSilent},
		} {
			expect(t, name, breaker.Do(call.ctx, guard, silent, after(call.wait, call.err)), call.err)
			expect(t, "the call after "+name, breaker.Do(t.Context(), guard, silent, after(0, nil)), nil)
		}
	})
}
