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
	"github.com/einmal-operators/einmal/cmd/einmal/internal/guard"
	"github.com/einmal-operators/einmal/cmd/einmal/internal/supervise"
)

const (
	operatorColour = console.Green
	// exitUsage is the exit code of an operator that does not accept its command line. A Go program that panics has the
	// same exit code.
	exitUsage = 2
)

// supervise runs the operator and keeps its token valid, from the first rollout until ctx ends.
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
		Name: "the operator", Start: s.startOperator, Refused: refused, Describe: guard.Describe,
		Grace: operatorGrace, Say: s.dev.Sayf,
	}
	supervise.Run(ctx, program, s.replace, func() {
		s.dev.Sayf("the operator runs as %s", s.account.User())
		s.starting.Do(func() {
			s.dev.Sayf("started after %s", time.Since(s.begin).Round(100*time.Millisecond))
			close(s.started)
		})
	})
}

// startOperator starts the operator in the cluster that this run began with, and in no other one.
func (s *session) startOperator(ctx context.Context) (supervise.Process, error) {
	if err := s.target.Verify(ctx); err != nil {
		return nil, err
	}
	stdout := s.screen.Stream("operator", operatorColour)
	stderr := s.screen.Stream("operator", operatorColour)
	args := []string{
		s.place.Binary, "run", "--kubeconfig", s.place.Kubeconfig,
		"--health-probe-bind-address", "127.0.0.1:0", "--metrics-bind-address", "127.0.0.1:0",
	}
	p := &operatorProcess{done: make(chan struct{})}
	process, err := s.starter.Start(guard.Command{
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

// environment is that of this process, but for the kubeconfig: the operator's own, so that it cannot become another
// user by accident.
func (s *session) environment() []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "KUBECONFIG=") {
			env = append(env, variable)
		}
	}
	return append(env, "KUBECONFIG="+s.place.Kubeconfig)
}

// operatorProcess is done when also its last words are on the screen.
type operatorProcess struct {
	*guard.Process
	done  chan struct{}
	crash crashDetector
}

// refused reports whether an operator has ended because it does not accept its command line.
func refused(process supervise.Process) bool {
	p, ok := process.(*operatorProcess)
	return ok && p.ExitCode() == exitUsage && !p.crash.seen.Load()
}

// crashDetector finds the stack trace of a Go program among the lines that it writes.
type crashDetector struct {
	line []byte
	seen atomic.Bool
}

// Write looks for a line that begins a stack trace. It is called by one goroutine only.
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

// Done is closed when the operator has ended.
func (p *operatorProcess) Done() <-chan struct{} { return p.done }

// Stop stops the operator and reports whether it ended by itself.
func (p *operatorProcess) Stop(grace time.Duration) bool {
	byItself := p.Process.Stop(grace)
	<-p.done
	return byItself
}
