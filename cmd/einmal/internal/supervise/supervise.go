// Package supervise keeps the operator running: it restarts the operator with backoff when it exits, and replaces it on
// request.
package supervise

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/einmal-operators/einmal/cmd/einmal/internal/process"
)

const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// stableAfter is how long the operator must run to reset the backoff.
	stableAfter = time.Minute
)

// firstBackoff returns the pauses between restarts: the first one, then twice as long each time, up to the last one.
func firstBackoff() wait.Backoff {
	return wait.Backoff{Duration: firstPause, Factor: 2, Cap: lastPause, Steps: int(lastPause / firstPause)}
}

// Process is a running operator.
type Process interface {
	// Done returns a channel that is closed when the process has exited.
	Done() <-chan struct{}
	// ExitCode returns the exit code of an exited process.
	ExitCode() int
	// Stop asks the process to exit, waits, and kills it after the grace period. It reports whether the process exited
	// within the grace period.
	Stop(grace time.Duration) bool
}

// Operator describes the operator to keep running.
type Operator struct {
	// Start starts the operator.
	Start func() (Process, error)
	// Refused reports whether the exit code means that the operator rejected its command line. The operator is then not
	// restarted until it is replaced, because it would fail in the same way.
	Refused func(code int) bool
	// Grace is how long the operator may take to stop before it is killed.
	Grace time.Duration
	// Logf receives messages for the user.
	Logf func(format string, args ...any)
}

// outcome is how a run of the operator ended.
type outcome int

const (
	exited  outcome = iota // by itself, or it could not be started
	refused                // it rejected its command line
	stopped                // to be replaced, or because the context is done
)

// Run keeps the operator running until ctx is done, then stops it and returns. A value from replace restarts the operator
// immediately. started is called after each start.
func Run(ctx context.Context, o Operator, replace <-chan struct{}, started func()) {
	backoff := firstBackoff()
	for ctx.Err() == nil {
		begin := time.Now()
		end := o.runOnce(ctx, replace, started)
		var again <-chan time.Time
		switch {
		case end == stopped || ctx.Err() != nil:
			backoff = firstBackoff()
			continue
		case end == refused:
			o.Logf("the operator rejected its command line; it will be restarted only after source changes\n" +
				"remedy: read its output above, stop einmal dev with Ctrl-C and correct the arguments after --")
		default:
			if time.Since(begin) >= stableAfter {
				backoff = firstBackoff()
			}
			pause := backoff.Step()
			o.Logf("restarting the operator in %s, or immediately after source changes", pause)
			again = time.After(pause)
		}
		select {
		case <-ctx.Done():
		case <-replace:
			backoff = firstBackoff()
		case <-again:
		}
	}
}

// runOnce runs the operator until it exits, is to be replaced, or ctx is done.
func (o Operator) runOnce(ctx context.Context, replace <-chan struct{}, started func()) outcome {
	running, err := o.Start()
	if err != nil {
		o.Logf("failed to start the operator: %v", err)
		return exited
	}
	started()
	select {
	case <-ctx.Done():
		o.stop(running)
		return stopped
	case <-replace:
		o.stop(running)
		return stopped
	case <-running.Done():
		o.Logf("the operator exited unexpectedly (%s)", process.Describe(running.ExitCode()))
		if o.Refused(running.ExitCode()) {
			return refused
		}
		return exited
	}
}

func (o Operator) stop(running Process) {
	o.Logf("stopping the operator …")
	begin := time.Now()
	if running.Stop(o.Grace) {
		o.Logf("the operator stopped after %s (%s)", time.Since(begin).Round(time.Millisecond), process.Describe(running.ExitCode()))
		return
	}
	o.Logf("killed the operator: it did not stop within %s", o.Grace)
}
