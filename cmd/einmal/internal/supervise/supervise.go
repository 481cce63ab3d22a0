// Package supervise keeps a program running: it restarts the program with backoff when it exits, and replaces it on
// request.
package supervise

import (
	"context"
	"time"
)

const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// stableAfter is how long a program must run to reset the backoff.
	stableAfter = time.Minute
)

// Backoff computes how long to wait before a restart.
type Backoff struct {
	next time.Duration
}

// Next returns the pause before the next restart of a program that ran for the given time. The pause is one second at
// first, doubles each time up to thirty seconds, and starts at one second again after the program ran for a minute.
func (b *Backoff) Next(ran time.Duration) time.Duration {
	if ran >= stableAfter {
		b.Reset()
	}
	pause := max(b.next, firstPause)
	b.next = min(2*pause, lastPause)
	return pause
}

// Reset makes the next pause the shortest one.
func (b *Backoff) Reset() { b.next = 0 }

// Process is a running program.
type Process interface {
	// Done returns a channel that is closed when the process has exited.
	Done() <-chan struct{}
	// ExitCode returns the exit code of an exited process.
	ExitCode() int
	// Stop asks the process to exit, waits, and kills it after the grace period. It reports whether the process exited
	// within the grace period.
	Stop(grace time.Duration) bool
}

// Program describes the program to keep running.
type Program struct {
	// Name is the name of the program in messages.
	Name string
	// Start starts the program.
	Start func() (Process, error)
	// Refused reports whether an exited process rejected its command line. The program is then not restarted until it is
	// replaced, because it would fail in the same way. If Refused is nil, the program is always restarted.
	Refused func(p Process) bool
	// Describe returns a description of an exit code.
	Describe func(code int) string
	// Grace is how long the program may take to stop before it is killed.
	Grace time.Duration
	// Logf receives messages for the user.
	Logf func(format string, args ...any)
}

// Run keeps the program running until ctx is done, then stops it and returns. A value from replace restarts the program
// immediately. started is called after each start.
func Run(ctx context.Context, p Program, replace <-chan struct{}, started func()) {
	var backoff Backoff
	for ctx.Err() == nil {
		begin := time.Now()
		process, err := p.Start()
		if err != nil {
			p.Logf("failed to start %s: %v", p.Name, err)
		} else {
			started()
			select {
			case <-ctx.Done():
				p.stop(process)
				return
			case <-replace:
				p.stop(process)
				backoff.Reset()
				continue
			case <-process.Done():
				p.Logf("%s exited unexpectedly (%s)", p.Name, p.Describe(process.ExitCode()))
				if p.Refused != nil && p.Refused(process) {
					p.awaitReplacement(ctx, replace)
					backoff.Reset()
					continue
				}
			}
		}
		if !p.pause(ctx, backoff.Next(time.Since(begin)), replace) {
			backoff.Reset()
		}
	}
}

// awaitReplacement waits until the program is replaced or ctx is done.
func (p Program) awaitReplacement(ctx context.Context, replace <-chan struct{}) {
	p.Logf("%s rejected its command line; it will be restarted only after source changes\n"+
		"remedy: read its output above, stop einmal dev with Ctrl-C and correct the arguments after --", p.Name)
	select {
	case <-ctx.Done():
	case <-replace:
	}
}

// pause waits and reports whether it waited to the end, and not for a replacement.
func (p Program) pause(ctx context.Context, length time.Duration, replace <-chan struct{}) bool {
	if ctx.Err() != nil {
		return true
	}
	p.Logf("restarting %s in %s, or immediately after source changes", p.Name, length)
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return true
	case <-replace:
		return false
	case <-timer.C:
		return true
	}
}

func (p Program) stop(process Process) {
	p.Logf("stopping %s …", p.Name)
	begin := time.Now()
	if process.Stop(p.Grace) {
		p.Logf("%s stopped after %s (%s)", p.Name, time.Since(begin).Round(time.Millisecond), p.Describe(process.ExitCode()))
		return
	}
	p.Logf("killed %s: it did not stop within %s", p.Name, p.Grace)
}
