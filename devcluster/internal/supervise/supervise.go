// Package supervise starts the components of a cluster as child processes,
// notices when one ends, and stops them. No child outlives the parent, however
// the parent ends: every child holds the read end of a pipe whose write end the
// parent alone holds, and leaves when that pipe is closed.
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

// The file descriptors that a child inherits besides the standard three.
const (
	lifelineFD = 3
	holdFD     = 4
)

// Spec says how to run one component.
type Spec struct {
	// Name is what messages call the component.
	Name string
	// Program and Args are what is executed.
	Program string
	Args    []string
	// Dir is the working directory.
	Dir string
	// LogFile receives what the component writes. A log from an earlier run is
	// kept next to it with the suffix .1.
	LogFile string
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

// NewGroup returns a group without processes. Each process inherits hold, so
// that a lock on it lasts until the last of them is gone.
func NewGroup(hold *os.File) (*Group, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("lifeline: %w", err)
	}
	const plenty = 64 // never blocks a watcher: far fewer processes are started
	return &Group{
		readEnd: r, writeEnd: w, hold: hold,
		failed:   make(chan *Process, plenty),
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
	p.cmd = exec.Command(spec.Program, spec.Args...) //nolint:gosec,noctx // runs this very binary; Stop ends it, in order
	p.cmd.Dir = spec.Dir
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// In this order they become lifelineFD and holdFD.
	p.cmd.ExtraFiles = []*os.File{g.readEnd, g.hold}
	// In a group of its own, a child does not get the terminal's Ctrl-C: the
	// parent stops the components in its own order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
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

// Failed delivers every component that ended without having been stopped.
func (g *Group) Failed() <-chan *Process { return g.failed }

// Stop asks the processes to terminate, all at once, and kills those that are
// still there after grace. It returns when they are gone, with an error that
// names the ones killed.
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
			killed = append(killed, fmt.Errorf("%s did not stop within %s and was killed", p.Name, grace))
		}
	}
	return errors.Join(killed...)
}

// Close lets go of the lifeline; components that still run leave at once.
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

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Reason says how an ended process ended. It waits for the end.
func (p *Process) Reason() string {
	<-p.exited
	if p.err == nil {
		return "exit status 0"
	}
	return p.err.Error()
}

// signal sends a signal; a process that is already gone needs none.
func (p *Process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }
