package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/guard"
)

// readyLine begins the line by which devcluster says that the cluster is ready, and where its kubeconfig is.
const readyLine = "export KUBECONFIG="

// stopTimeout is how long a devcluster has to stop when it is asked to; its parts stop one after the other.
const stopTimeout = 45 * time.Second

const (
	// startPoll and startTimeout are for a cluster that another process is starting: how often to ask, how long to wait.
	startPoll    = 300 * time.Millisecond
	startTimeout = 2 * time.Minute
	// alivePoll is how often to look whether a cluster that another process started still runs.
	alivePoll = 500 * time.Millisecond
)

// Devcluster is a devcluster of a directory, running.
type Devcluster struct {
	// Kubeconfig is the absolute path of its kubeconfig file.
	Kubeconfig string

	process *guard.Process // nil if it was there before
	pid     int            // of the process that was there before
}

// Starter starts programs that end with this one.
type Starter interface {
	Runner
	StartUnguarded(c guard.Command) (*guard.Process, error)
}

// Options say which devcluster is wanted.
type Options struct {
	// Program is the path of the devcluster program.
	Program string
	// Data is the absolute path of the cluster's directory.
	Data string
	// Fresh asks for an empty cluster.
	Fresh bool
	// Screen takes what devcluster says.
	Screen io.Writer
}

// Find returns the devcluster that runs for the directory already, or nil.
func Find(ctx context.Context, starter Starter, o Options) (*Devcluster, error) {
	status, err := AskStatus(ctx, starter, o.Program, o.Data)
	if err != nil {
		return nil, err
	}
	if !status.Running {
		return nil, nil
	}
	if o.Fresh {
		return nil, fmt.Errorf("--fresh: a devcluster is running for %s already (process %d)\n"+
			"remedy: stop it first: %s down --data %s", o.Data, status.PID, Quote(o.Program), Quote(o.Data))
	}
	if status, err = awaitReady(ctx, starter, o, status); err != nil {
		return nil, err
	}
	if status.Kubeconfig == "" {
		return nil, fmt.Errorf("the devcluster that is running for %s names no kubeconfig", o.Data)
	}
	return &Devcluster{Kubeconfig: status.Kubeconfig, pid: status.PID}, nil
}

// awaitReady waits for a cluster that is just starting.
func awaitReady(ctx context.Context, starter Starter, o Options, status Status) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for status.Ready != nil && !*status.Ready {
		select {
		case <-ctx.Done():
			return status, fmt.Errorf("wait for the devcluster that is starting for %s (process %d): %w",
				o.Data, status.PID, context.Cause(ctx))
		case <-tick.C:
		}
		var err error
		if status, err = AskStatus(ctx, starter, o.Program, o.Data); err != nil {
			return status, err
		}
		if !status.Running {
			return status, fmt.Errorf("the devcluster that was starting for %s has ended", o.Data)
		}
	}
	return status, nil
}

// Start starts a devcluster for the directory and waits until it is ready.
func Start(ctx context.Context, starter Starter, o Options) (*Devcluster, error) {
	args := []string{o.Program, "up", "--data", o.Data, "--exit-with-fd", "3"}
	if o.Fresh {
		args = append(args, "--fresh")
	}
	ready := &readyWriter{screen: o.Screen, kubeconfig: make(chan string, 1)}
	process, err := starter.StartUnguarded(guard.Command{Args: args, Stdout: ready, Stderr: o.Screen})
	if err != nil {
		return nil, err
	}
	cluster := &Devcluster{process: process}
	select {
	case cluster.Kubeconfig = <-ready.kubeconfig:
		return cluster, nil
	case <-process.Done():
		return nil, fmt.Errorf("devcluster ended before it was ready (%s); its last lines, above, say why",
			guard.Describe(process.ExitCode()))
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), cluster.Stop())
	}
}

// Started tells whether it is ours, and not one that was there before.
func (d *Devcluster) Started() bool { return d.process != nil }

// Done returns a channel that is closed when the devcluster ends. A devcluster that was there before is watched until
// ctx ends.
func (d *Devcluster) Done(ctx context.Context) <-chan struct{} {
	if d.process != nil {
		return d.process.Done()
	}
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(alivePoll)
		defer tick.Stop()
		for alive(d.pid) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		close(done)
	}()
	return done
}

// alive reports whether a process exists.
func alive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// End says in words how a devcluster has ended.
func (d *Devcluster) End() string {
	if d.process == nil {
		return fmt.Sprintf("(process %d is gone); this einmal dev did not start it", d.pid)
	}
	return "(" + guard.Describe(d.process.ExitCode()) + "); its last lines, above, say why"
}

// Stop stops a devcluster that we started; one that was there before is left alone.
func (d *Devcluster) Stop() error {
	if d.process == nil {
		return nil
	}
	if !d.process.Stop(stopTimeout) {
		return fmt.Errorf("devcluster did not stop within %s and was killed", stopTimeout)
	}
	return nil
}

// readyWriter passes output on to the screen, but for the line that says that the cluster is ready.
type readyWriter struct {
	screen     io.Writer
	kubeconfig chan string

	mu      sync.Mutex
	partial []byte
	ready   bool
}

// Write takes output as it comes.
func (w *readyWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ready {
		return w.screen.Write(p)
	}
	w.partial = append(w.partial, p...)
	for !w.ready {
		end := bytes.IndexByte(w.partial, '\n')
		if end < 0 {
			return len(p), nil
		}
		line := w.partial[:end+1]
		w.partial = w.partial[end+1:]
		path, ok := strings.CutPrefix(strings.TrimSpace(string(line)), readyLine)
		if !ok {
			_, _ = w.screen.Write(line)
			continue
		}
		w.ready = true
		w.kubeconfig <- Unquote(path)
	}
	_, _ = w.screen.Write(w.partial)
	w.partial = nil
	return len(p), nil
}
