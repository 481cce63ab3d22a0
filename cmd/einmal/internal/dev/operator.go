package dev

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/console"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/reaper"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/supervise"
)

const (
	operatorColour = console.Green
	// exitUsage is the exit code of an operator that rejects its command line. A panic in a Go program has the same exit
	// code.
	exitUsage = 2
)

// supervise runs the operator and keeps its token valid, from the first rollout until ctx is done.
func (s *session) supervise(ctx context.Context) {
	select {
	case <-s.replace:
	case <-ctx.Done():
		return
	}
	var keeping sync.WaitGroup
	defer keeping.Wait()
	keeping.Go(func() { s.tokens.Keep(ctx) })
	program := supervise.Program{
		Name: "the operator", Start: s.startOperator, Refused: refused, Describe: reaper.Describe,
		Grace: operatorGrace, Logf: s.dev.Printf,
	}
	supervise.Run(ctx, program, s.replace, func() {
		s.dev.Printf("the operator runs as %s", s.account.User())
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
	p := &operatorProcess{done: make(chan struct{})}
	process, err := s.spawner.Start(reaper.Command{
		Args: append(args, s.options.OperatorArgs...), Env: s.environment(), Stdout: stdout,
		Stderr: io.MultiWriter(stderr, &p.crash),
	})
	if err != nil {
		return nil, err
	}
	p.Process = process
	s.running.Store(true)
	go func() {
		defer close(p.done)
		<-process.Done()
		s.running.Store(false)
		_, _ = stdout.Close(), stderr.Close()
	}()
	return p, nil
}

// environment returns the environment of this process with KUBECONFIG set to the operator's own kubeconfig, so that the
// operator cannot act as another user by accident.
func (s *session) environment() []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "KUBECONFIG=") {
			env = append(env, variable)
		}
	}
	return append(env, "KUBECONFIG="+s.runDir.Kubeconfig)
}

// operatorProcess is a running operator. It is done only after all of its output has been written to the screen.
type operatorProcess struct {
	*reaper.Process
	done  chan struct{}
	crash crashDetector
}

// refused reports whether an operator has exited because it rejects its command line.
func refused(process supervise.Process) bool {
	p, ok := process.(*operatorProcess)
	return ok && p.ExitCode() == exitUsage && !p.crash.seen.Load()
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

// Done returns a channel that is closed when the operator has exited.
func (p *operatorProcess) Done() <-chan struct{} { return p.done }

// Stop stops the operator and reports whether it exited within the grace period.
func (p *operatorProcess) Stop(grace time.Duration) bool {
	inTime := p.Process.Stop(grace)
	<-p.done
	return inTime
}
