package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/supervise"
)

func TestBackoffDoublesUpToALimitAndResetsAfterALongRun(t *testing.T) {
	messages := supervised(t, func(n int) (*fake, error) {
		if n == 8 {
			return newFake(time.Minute), nil
		}
		return newFake(time.Second), nil
	}, func(chan<- struct{}) { <-time.After(4 * time.Minute) })
	var pauses []string
	for _, line := range messages {
		if _, pause, ok := strings.Cut(line, "restarting the operator in "); ok {
			pauses = append(pauses, strings.TrimSuffix(pause, ", or immediately after source changes"))
		}
	}
	if diff := cmp.Diff([]string{"1s", "2s", "4s", "8s", "16s", "30s", "30s", "1s", "2s"}, pauses[:min(9, len(pauses))]); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
}

// fake is an operator that runs for a while or until it is stopped. If it ignores the stop, it must be killed.
type fake struct {
	done        chan struct{}
	ignoresStop bool
}

func newFake(runs time.Duration) *fake {
	f := &fake{done: make(chan struct{})}
	if runs > 0 {
		time.AfterFunc(runs, func() { close(f.done) })
	}
	return f
}

func (f *fake) Done() <-chan struct{} { return f.done }
func (f *fake) ExitCode() int         { return 2 }
func (f *fake) Stop(grace time.Duration) bool {
	if f.ignoresStop {
		<-time.After(grace)
	}
	close(f.done)
	return !f.ignoresStop
}

// supervised runs an operator in virtual time. script returns the result of the n-th start. supervised returns the messages,
// each prefixed with the time in seconds.
func supervised(t *testing.T, script func(n int) (*fake, error), during func(replace chan<- struct{})) []string {
	t.Helper()
	var messages []string
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		say := func(format string, args ...any) {
			messages = append(messages, fmt.Sprintf("%.0fs ", time.Since(begin).Seconds())+fmt.Sprintf(format, args...))
		}
		starts := 0
		operator := supervise.Operator{
			Grace: 30 * time.Second, Logf: say, Refused: func(int) bool { return false },
			Start: func() (supervise.Process, error) {
				starts++
				return script(starts)
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		replace := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			supervise.Run(ctx, operator, replace, func() { say("started") })
		}()
		during(replace)
		cancel()
		<-done
	})
	return messages
}

func TestCrashedProgramIsRestartedWithBackoff(t *testing.T) {
	messages := supervised(t, func(n int) (*fake, error) {
		switch n {
		case 1:
			return newFake(5 * time.Second), nil
		case 2:
			return nil, errors.New("no such file")
		}
		return newFake(0), nil
	}, func(chan<- struct{}) { <-time.After(20 * time.Second) })
	want := []string{
		"0s started", "5s the operator exited unexpectedly (exit code 2)",
		"5s restarting the operator in 1s, or immediately after source changes",
		"6s failed to start the operator: no such file",
		"6s restarting the operator in 2s, or immediately after source changes",
		"8s started", "20s stopping the operator …", "20s the operator stopped after 0s (exit code 2)",
	}
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestReplacementSkipsTheBackoff(t *testing.T) {
	messages := supervised(t, func(n int) (*fake, error) {
		if n == 1 {
			return newFake(time.Second), nil
		}
		return newFake(0), nil
	}, func(replace chan<- struct{}) {
		<-time.After(1500 * time.Millisecond)
		replace <- struct{}{} // during the pause
		<-time.After(10 * time.Second)
		replace <- struct{}{} // while it runs
		<-time.After(10 * time.Second)
	})
	var starts []string
	for _, line := range messages {
		if strings.HasSuffix(line, "started") {
			starts = append(starts, line)
		}
	}
	if diff := cmp.Diff([]string{"0s started", "2s started", "12s started"}, starts); diff != "" {
		t.Errorf("starts (-want +got):\n%s\nmessages %q", diff, messages)
	}
}

func TestProgramThatDoesNotStopIsKilled(t *testing.T) {
	messages := supervised(t, func(int) (*fake, error) {
		f := newFake(0)
		f.ignoresStop = true
		return f, nil
	}, func(chan<- struct{}) { <-time.After(time.Second) })
	want := []string{"0s started", "1s stopping the operator …", "31s killed the operator: it did not stop within 30s"}
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestProgramThatRejectsItsCommandLineIsNotRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := make(chan int, 10)
		operator := supervise.Operator{
			Logf: t.Logf, Refused: func(code int) bool { return code == 2 },
			Start: func() (supervise.Process, error) {
				starts <- 1
				return newFake(time.Second), nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		replace, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			supervise.Run(ctx, operator, replace, func() {})
		}()
		<-time.After(time.Hour)
		if len(starts) != 1 {
			t.Errorf("started %d times, want once", len(starts))
		}
		replace <- struct{}{}
		<-time.After(time.Hour)
		if len(starts) != 2 {
			t.Errorf("started %d times, want twice after the replacement", len(starts))
		}
		cancel()
		<-done
	})
}
