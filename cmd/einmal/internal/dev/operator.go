package dev

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/console"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/process"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/supervise"
)

const (
	operatorColour = console.Green
	// exitUsage is the exit code of an operator that rejects its command line. A panic in a Go program has the same exit
	// code.
	exitUsage = 2
)

// supervise runs the operator from the first rollout until ctx is done.
func (s *session) supervise(ctx context.Context) {
	select {
	case <-s.replace:
	case <-ctx.Done():
		return
	}
	operator := supervise.Operator{Start: s.startOperator, Refused: s.refused, Grace: operatorGrace, Logf: s.dev.Printf}
	supervise.Run(ctx, operator, s.replace, func() {
		s.dev.Printf("the operator runs as %s", s.account.Load().User())
		s.starting.Do(func() {
			s.dev.Printf("started after %s", time.Since(s.begin).Round(100*time.Millisecond))
			close(s.started)
		})
	})
}

// startOperator starts the operator.
func (s *session) startOperator() (supervise.Process, error) {
	stdout := s.screen.Stream("operator", operatorColour)
	stderr := s.screen.Stream("operator", operatorColour)
	args := []string{
		s.runDir.Binary, "run", "--kubeconfig", s.runDir.Kubeconfig,
		"--health-probe-bind-address", "127.0.0.1:0", "--metrics-bind-address", "127.0.0.1:0",
	}
	s.crash = &crashDetector{}
	s.running.Store(true)
	running, err := s.spawner.Start(process.Command{
		Args: append(args, s.options.OperatorArgs...), Env: s.environment(), Stdout: stdout,
		Stderr: io.MultiWriter(stderr, s.crash),
		OnExit: func() {
			s.running.Store(false)
			_, _ = stdout.Close(), stderr.Close()
		},
	})
	if err != nil {
		s.running.Store(false)
		return nil, err
	}
	return running, nil
}

// environment returns the environment of this process with KUBECONFIG set to the operator's own kubeconfig, so that the
// operator cannot act as another user by accident.
func (s *session) environment() []string {
	return append(os.Environ(), "KUBECONFIG="+s.runDir.Kubeconfig) // the last value of a variable counts
}

// refused reports whether the last operator has exited because it rejects its command line.
func (s *session) refused(code int) bool {
	return code == exitUsage && !s.crash.seen.Load()
}

// crashDetector detects a stack trace in the output of a Go program.
type crashDetector struct {
	line []byte
	seen atomic.Bool
}

// Write looks for a line that begins a stack trace. It is not safe for concurrent use.
func (d *crashDetector) Write(p []byte) (int, error) {
	begin := []byte("goroutine ")
	for _, c := range p {
		switch {
		case c == '\n':
			d.line = d.line[:0]
		case len(d.line) < len(begin):
			d.line = append(d.line, c)
			if bytes.Equal(d.line, begin) {
				d.seen.Store(true)
			}
		}
	}
	return len(p), nil
}
