// Package supervise starts the components of a cluster as child processes,
// reports when one exits, and stops them. No child outlives the parent, even if
// the parent is killed: each child reads the parent pipe, whose write end only the
// parent holds, and exits when the pipe is closed.
package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// The file descriptors that a child inherits besides the standard streams.
const (
	parentPipeFD = 3
	holdFD       = 4
)

// Spec describes how to run a component.
type Spec struct {
	// Name is the name of the component in messages.
	Name string
	// Program and Args are the command line.
	Program string
	Args    []string
	// Dir is the working directory.
	Dir string
	// LogFile receives the output of the component. The log of the previous run
	// is kept with the suffix ".1".
	LogFile string
	// Attributes say in which namespaces the process starts; nil for those of the
	// parent.
	Attributes *syscall.SysProcAttr
	// Foreign is set for a program that is not devcluster. It does not read the
	// parent pipe, so it can outlive a parent that is killed, unless the parent is
	// the first process of its namespaces.
	Foreign bool
}

// Process is a started component.
type Process struct {
	Spec
	cmd    *exec.Cmd
	exited chan struct{}
	err    error
}

// Group is the set of components of one cluster.
type Group struct {
	readEnd, writeEnd *os.File
	hold              *os.File

	mu        sync.Mutex
	processes []*Process
	failed    chan *Process
	stopping  map[*Process]bool
}

// NewGroup returns a group without processes. Each process inherits hold, if it is
// not nil, so that a lock on it is held until the last process has exited.
func NewGroup(hold *os.File) (*Group, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open the pipe that stops child processes: %w", err)
	}
	const capacity = 64 // more than the number of processes, so that watch never blocks
	return &Group{
		readEnd: r, writeEnd: w, hold: hold,
		failed:   make(chan *Process, capacity),
		stopping: map[*Process]bool{},
	}, nil
}

// Start starts a component and watches it.
func (g *Group) Start(spec Spec) (*Process, error) {
	log, err := openLog(spec.LogFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	p := &Process{Spec: spec, exited: make(chan struct{})}
	p.cmd = exec.Command(spec.Program, spec.Args...) //nolint:gosec,noctx // runs the same binary; Stop stops it
	p.cmd.Dir = spec.Dir
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if !spec.Foreign {
		// In this order they become parentPipeFD and holdFD.
		p.cmd.ExtraFiles = []*os.File{g.readEnd, g.hold}
	}
	p.cmd.SysProcAttr = spec.Attributes
	if p.cmd.SysProcAttr == nil {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// In its own process group, a child does not receive Ctrl-C from the terminal.
	// The parent stops the components in the right order.
	p.cmd.SysProcAttr.Setpgid = true
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	g.mu.Lock()
	g.processes = append(g.processes, p)
	g.mu.Unlock()
	go g.watch(p)
	return p, nil
}

func (g *Group) watch(p *Process) {
	p.err = p.cmd.Wait()
	close(p.exited)
	g.mu.Lock()
	expected := g.stopping[p]
	g.mu.Unlock()
	if !expected {
		g.failed <- p
	}
}

// Failed returns a channel of the components that exited without being stopped.
func (g *Group) Failed() <-chan *Process { return g.failed }

// Stop sends SIGTERM to all given processes and kills those that still run after
// the grace period. It waits until they have exited and returns an error that
// names the killed ones.
func (g *Group) Stop(grace time.Duration, processes ...*Process) error {
	g.mu.Lock()
	for _, p := range processes {
		g.stopping[p] = true
	}
	g.mu.Unlock()
	for _, p := range processes {
		p.signal(syscall.SIGTERM)
	}
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	var killed []error
	for _, p := range processes {
		select {
		case <-p.exited:
			continue
		case <-deadline.C:
			deadline.Reset(0)
		}
		select {
		case <-p.exited:
		default:
			p.signal(syscall.SIGKILL)
			<-p.exited
			killed = append(killed, fmt.Errorf("stop %s: killed because it did not stop within %s", p.Name, grace))
		}
	}
	return errors.Join(killed...)
}

// Close closes the parent pipe, so that remaining components exit immediately, and
// waits for them.
func (g *Group) Close() error {
	err := errors.Join(g.writeEnd.Close(), g.readEnd.Close())
	g.mu.Lock()
	processes := g.processes
	for _, p := range processes {
		g.stopping[p] = true
	}
	g.mu.Unlock()
	for _, p := range processes {
		<-p.exited
	}
	return err
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Reason waits until the process has exited and describes how.
func (p *Process) Reason() string {
	<-p.exited
	if p.err == nil {
		return "exit status 0"
	}
	return p.err.Error()
}

// signal sends a signal. It ignores the error for a process that has exited.
func (p *Process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }
