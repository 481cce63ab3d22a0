package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/process"
)

// stopTimeout is how long a devcluster may take to stop. Its components stop one after the other, the containers of a real node first.
const stopTimeout = time.Minute

const (
	// startPoll is how often to check whether a cluster that another process is starting is ready, startTimeout how long.
	startPoll    = 300 * time.Millisecond
	startTimeout = 2 * time.Minute
	// alivePoll is how often to check whether a cluster that another process started is still running.
	alivePoll = 500 * time.Millisecond
)

// Devcluster is a running devcluster.
type Devcluster struct {
	// Status is its status when it was ready.
	Status

	options Options
	up      *process.Process // "devcluster up"; nil if another process started it
}

// Options configure Find and Start.
type Options struct {
	// Program is the path of the devcluster program.
	Program string
	// Data is the absolute path of the data directory.
	Data string
	// Fresh requires a cluster without the data of earlier runs.
	Fresh bool
	// Node is the required kind of nodes, "simulated" or "real". The default is what a running cluster has, else "simulated".
	Node string
	// Screen receives the output of devcluster.
	Screen io.Writer
}

// Find returns the devcluster that is already running for the data directory, or nil. It waits until the cluster is ready.
func Find(ctx context.Context, spawner *process.Spawner, o Options) (*Devcluster, error) {
	status, err := ReadStatus(ctx, spawner, o)
	if err != nil || !status.Running {
		return nil, err
	}
	if o.Fresh {
		return nil, fmt.Errorf("flag --fresh: a devcluster is already running for %s (process %d)\n"+
			"remedy: stop it first: %s down --data %s", o.Data, status.PID, Quote(o.Program), Quote(o.Data))
	}
	pid := status.PID
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("timed out after %s", startTimeout))
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, startPoll, true, func(ctx context.Context) (ready bool, err error) {
		if !status.Ready {
			status, err = ReadStatus(ctx, spawner, o)
		}
		if err == nil && !status.Running {
			err = errors.New("it exited")
		}
		return status.Ready, err
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("wait until the devcluster for %s is ready (process %d): %w", o.Data, pid, err)
	}
	if o.Node != "" && o.Node != status.Node.Kind {
		return nil, fmt.Errorf("flag --node: the nodes of the devcluster that is running for %s (process %d) must be %s, got %s\n"+
			"remedy: stop it first; its data is kept: %s down --data %s", o.Data, status.PID, o.Node, status.Node.Kind, Quote(o.Program), Quote(o.Data))
	}
	return &Devcluster{Status: status, options: o}, nil
}

// Start starts a devcluster for the data directory and waits until it is ready.
func Start(ctx context.Context, spawner *process.Spawner, o Options) (*Devcluster, error) {
	args := []string{o.Program, "up", "--data", o.Data, "--exit-with-fd", "3"}
	if o.Fresh {
		args = append(args, "--fresh")
	}
	if o.Node != "" {
		args = append(args, "--node="+o.Node)
	}
	ready := &firstWrite{seen: make(chan struct{})}
	up, err := spawner.Start(process.Command{Args: args, Stdout: ready, Stderr: o.Screen, ReadsPipe: true})
	if err != nil {
		return nil, err
	}
	started := &Devcluster{options: o, up: up}
	select {
	case <-ready.seen:
		started.Status, err = ReadStatus(ctx, spawner, o)
	case <-up.Done():
		return nil, fmt.Errorf("start devcluster: it exited before it was ready %s", started.End())
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, started.Stop())
	}
	return started, nil
}

// firstWrite reports the first write. Devcluster writes to standard output once, when the cluster is ready.
type firstWrite struct {
	once sync.Once
	seen chan struct{}
}

// Write implements io.Writer.
func (w *firstWrite) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.seen) })
	return len(p), nil
}

// Started reports whether this process started the devcluster.
func (d *Devcluster) Started() bool { return d.up != nil }

// AwaitEnd waits until the devcluster exits, or ctx is done. It reports whether the devcluster has exited.
func (d *Devcluster) AwaitEnd(ctx context.Context) bool {
	if d.up == nil {
		return wait.PollUntilContextCancel(ctx, alivePoll, true, func(context.Context) (gone bool, err error) {
			return errors.Is(syscall.Kill(d.PID, 0), syscall.ESRCH), nil
		}) == nil
	}
	select {
	case <-d.up.Done():
		return true
	case <-ctx.Done():
		return false
	}
}

// End describes how the devcluster exited.
func (d *Devcluster) End() string {
	if d.up == nil {
		return fmt.Sprintf("(process %d is gone); it was not started by this einmal dev", d.PID)
	}
	return "(" + process.Describe(d.up.ExitCode()) + "); see its output above"
}

// Stop stops the devcluster if this process started it.
func (d *Devcluster) Stop() error {
	if d.up != nil && !d.up.Stop(stopTimeout) {
		return fmt.Errorf("stop devcluster: killed because it did not stop within %s", stopTimeout)
	}
	return nil
}
