package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/reaper"
)

// readyLine is the prefix of the line that devcluster prints when the cluster is ready.
const readyLine = "export KUBECONFIG="

// stopTimeout is how long a devcluster may take to stop. Its components stop one after the other.
const stopTimeout = 45 * time.Second

const (
	// startPoll is how often to check whether a cluster that another process is starting is ready, startTimeout how long.
	startPoll    = 300 * time.Millisecond
	startTimeout = 2 * time.Minute
	// alivePoll is how often to check whether a cluster that another process started is still running.
	alivePoll = 500 * time.Millisecond
)

// Devcluster is a running devcluster.
type Devcluster struct {
	// Kubeconfig is the absolute path of its kubeconfig file.
	Kubeconfig string
	// Server is the address of its API server.
	Server string

	program, data string          // as in Options
	process       *reaper.Process // nil if another process started it
	pid           int             // process ID of "devcluster up"
}

// Spawner starts programs that do not outlive this process.
type Spawner interface {
	Runner
	StartWithoutReaper(c reaper.Command) (*reaper.Process, error)
}

// Options configure Find and Start.
type Options struct {
	// Program is the path of the devcluster program.
	Program string
	// Data is the absolute path of the data directory.
	Data string
	// Fresh requires a cluster without the data of earlier runs.
	Fresh bool
	// Screen receives the output of devcluster.
	Screen io.Writer
}

// Find returns the devcluster that is already running for the data directory, or nil. It waits until the cluster is ready.
func Find(ctx context.Context, spawner Spawner, o Options) (*Devcluster, error) {
	status, err := ReadStatus(ctx, spawner, o.Program, o.Data)
	if err != nil {
		return nil, err
	}
	if !status.Running {
		return nil, nil
	}
	if o.Fresh {
		return nil, fmt.Errorf("flag --fresh: a devcluster is already running for %s (process %d)\n"+
			"remedy: stop it first: %s down --data %s", o.Data, status.PID, Quote(o.Program), Quote(o.Data))
	}
	if status, err = awaitReady(ctx, spawner, o, status); err != nil {
		return nil, err
	}
	return o.running(status, nil)
}

// running returns the devcluster with a status. process is nil if another process started it.
func (o Options) running(status Status, process *reaper.Process) (*Devcluster, error) {
	if status.Kubeconfig == "" || status.Server == "" {
		return nil, fmt.Errorf("the devcluster running for %s reports no kubeconfig or no server", o.Data)
	}
	return &Devcluster{
		Kubeconfig: status.Kubeconfig, Server: status.Server, program: o.Program, data: o.Data, process: process, pid: status.PID,
	}, nil
}

// awaitReady waits until a starting cluster is ready.
func awaitReady(ctx context.Context, spawner Spawner, o Options, status Status) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for status.Ready != nil && !*status.Ready {
		select {
		case <-ctx.Done():
			return status, fmt.Errorf("wait until the devcluster for %s is ready (process %d): %w",
				o.Data, status.PID, context.Cause(ctx))
		case <-tick.C:
		}
		var err error
		if status, err = ReadStatus(ctx, spawner, o.Program, o.Data); err != nil {
			return status, err
		}
		if !status.Running {
			return status, fmt.Errorf("wait until the devcluster for %s is ready: it exited", o.Data)
		}
	}
	return status, nil
}

// Start starts a devcluster for the data directory and waits until it is ready.
func Start(ctx context.Context, spawner Spawner, o Options) (*Devcluster, error) {
	args := []string{o.Program, "up", "--data", o.Data, "--exit-with-fd", "3"}
	if o.Fresh {
		args = append(args, "--fresh")
	}
	ready := &readyWriter{screen: o.Screen, seen: make(chan struct{})}
	process, err := spawner.StartWithoutReaper(reaper.Command{Args: args, Stdout: ready, Stderr: o.Screen})
	if err != nil {
		return nil, err
	}
	select {
	case <-ready.seen:
	case <-process.Done():
		return nil, fmt.Errorf("start devcluster: it exited before it was ready (%s); see its output above",
			reaper.Describe(process.ExitCode()))
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), stop(process))
	}
	status, err := ReadStatus(ctx, spawner, o.Program, o.Data)
	if err != nil {
		return nil, errors.Join(err, stop(process))
	}
	started, err := o.running(status, process)
	if err != nil {
		return nil, errors.Join(err, stop(process))
	}
	return started, nil
}

// Started reports whether this process started the devcluster.
func (d *Devcluster) Started() bool { return d.process != nil }

// Done returns a channel that is closed when the devcluster exits. A devcluster that another process started is watched
// until ctx is done.
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

// End describes how the devcluster exited.
func (d *Devcluster) End() string {
	if d.process == nil {
		return fmt.Sprintf("(process %d is gone); it was not started by this einmal dev", d.pid)
	}
	return "(" + reaper.Describe(d.process.ExitCode()) + "); see its output above"
}

// Stop stops the devcluster if this process started it.
func (d *Devcluster) Stop() error {
	if d.process == nil {
		return nil
	}
	return stop(d.process)
}

func stop(process *reaper.Process) error {
	if !process.Stop(stopTimeout) {
		return fmt.Errorf("stop devcluster: killed because it did not stop within %s", stopTimeout)
	}
	return nil
}

// readyWriter writes output to the screen, except for the ready line, at which it closes seen.
type readyWriter struct {
	screen io.Writer
	seen   chan struct{}

	mu      sync.Mutex
	partial []byte
	ready   bool
}

// Write implements io.Writer.
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
		if !bytes.HasPrefix(line, []byte(readyLine)) {
			_, _ = w.screen.Write(line)
			continue
		}
		w.ready = true
		close(w.seen)
	}
	_, _ = w.screen.Write(w.partial)
	w.partial = nil
	return len(p), nil
}
