// Package supervise keeps one program running: it starts it again when it ends by itself, later each time, and
// replaces it on request.
package supervise

import (
	"context"
	"time"
)

const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// stableAfter is how long a program must have run for its next end to count as the first one.
	stableAfter = time.Minute
)

// Backoff says how long to wait before a program that ended is started again.
type Backoff struct {
	next time.Duration
}

// Next returns the pause after a program that ran for the given time: one second at first, twice as long each time,
// thirty seconds at most, and one second again after it ran for a minute.
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

// Process is a program that runs.
type Process interface {
	// Done is closed when it has ended.
	Done() <-chan struct{}
	// ExitCode is how it has ended.
	ExitCode() int
	// Stop asks it to end and waits; after grace it is killed. It tells whether it ended by itself.
	Stop(grace time.Duration) bool
}

// Program is what is kept running.
type Program struct {
	// Name is what messages call it.
	Name string
	// Start starts it.
	Start func(ctx context.Context) (Process, error)
	// Refused reports whether a process that has ended has rejected its command line. Such a program is not started
	// again until it is replaced: it would end in the same way. Nil means that no process has.
	Refused func(p Process) bool
	// Describe says in words what an exit code means.
	Describe func(code int) string
	// Grace is how long it has to finish when it is stopped.
	Grace time.Duration
	// Say takes messages.
	Say func(format string, args ...any)
}

// Run starts the program and keeps it running until ctx ends; then it stops it and returns. A value from replace
// stops it and starts it again at once. started is called after each start.
func Run(ctx context.Context, p Program, replace <-chan struct{}, started func()) {
	var backoff Backoff
	for ctx.Err() == nil {
		begin := time.Now()
		process, err := p.Start(ctx)
		if err != nil {
			p.Say("%s could not be started: %v", p.Name, err)
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
				p.Say("%s ended by itself (%s)", p.Name, p.Describe(process.ExitCode()))
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

// awaitReplacement waits until the program is replaced or ctx ends.
func (p Program) awaitReplacement(ctx context.Context, replace <-chan struct{}) {
	p.Say("%s does not accept its command line, so it is not started again until its sources change\n"+
		"remedy: see its lines above; stop einmal dev with Ctrl-C and correct what comes after --", p.Name)
	select {
	case <-ctx.Done():
	case <-replace:
	}
}

// pause waits, and tells whether it waited to the end.
func (p Program) pause(ctx context.Context, length time.Duration, replace <-chan struct{}) bool {
	if ctx.Err() != nil {
		return true
	}
	p.Say("it is started again in %s, or at once when its sources change", length)
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
	p.Say("stopping %s …", p.Name)
	begin := time.Now()
	if process.Stop(p.Grace) {
		p.Say("%s stopped after %s (%s)", p.Name, time.Since(begin).Round(time.Millisecond), p.Describe(process.ExitCode()))
		return
	}
	p.Say("%s did not finish within %s and was killed", p.Name, p.Grace)
}
