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
	var backoff supervise.Backoff
	var pauses []int
	for range 7 {
		pauses = append(pauses, int(backoff.Next(time.Second).Seconds()))
	}
	pauses = append(pauses, int(backoff.Next(2*time.Minute).Seconds()), int(backoff.Next(0).Seconds()))
	if diff := cmp.Diff([]int{1, 2, 4, 8, 16, 30, 30, 1, 2}, pauses); diff != "" {
		t.Errorf("pauses in seconds (-want +got):\n%s", diff)
	}
}

// fake is a program that runs for a while or until it is stopped. If it ignores the stop, it must be killed.
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

// supervised runs a program in virtual time. script returns the result of the n-th start. supervised returns the messages,
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
		program := supervise.Program{
			Name: "op", Grace: 30 * time.Second, Logf: say,
			Describe: func(code int) string { return fmt.Sprintf("exit code %d", code) },
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
			supervise.Run(ctx, program, replace, func() { say("started") })
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
		"0s started", "5s op exited unexpectedly (exit code 2)",
		"5s restarting op in 1s, or immediately after source changes",
		"6s failed to start op: no such file",
		"6s restarting op in 2s, or immediately after source changes",
		"8s started", "20s stopping op …", "20s op stopped after 0s (exit code 2)",
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
	want := []string{"0s started", "1s stopping op …", "31s killed op: it did not stop within 30s"}
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestProgramThatRejectsItsCommandLineIsNotRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		starts := make(chan int, 10)
		program := supervise.Program{
			Name: "op", Logf: t.Logf, Describe: func(int) string { return "" },
			Refused: func(p supervise.Process) bool { return p.ExitCode() == 2 },
			Start: func() (supervise.Process, error) {
				starts <- 1
				return newFake(time.Second), nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		replace, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			supervise.Run(ctx, program, replace, func() {})
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
