// Package process runs programs that do not outlive this process, even if SIGKILL ends it.
//
// Each program shares its process group with a guard: a shell that reads a pipe whose write end only this process holds.
// When the pipe ends, the guard stops the group. The kernel closes the pipe, so this works on any Unix.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// guardScript waits for the end of the pipe and then stops the process group of the guard, which ignores other signals.
const guardScript = `trap '' INT TERM HUP; read _; kill -TERM 0; sleep 5; kill -KILL 0`

// outputAfterExit is how long output is read after a program has exited, if another process still holds its pipe.
const outputAfterExit = 2 * time.Second

// stopGrace is how long a program started by Run may take to stop when the context ends.
const stopGrace = 5 * time.Second

// exitBySignal is added to the number of a signal to form the exit code of a program that the signal killed, as in shells.
const exitBySignal = 128

// Command describes a program to start.
type Command struct {
	// Args is the command line, including the program.
	Args []string
	// Dir is the working directory. The default is the current directory.
	Dir string
	// Env is the environment. If it is nil, the environment of this process is used.
	Env []string
	// Stdout and Stderr receive the output of the program.
	Stdout, Stderr io.Writer
	// ReadsPipe means that the program inherits the pipe as file descriptor 3 and stops by itself at the end of it.
	ReadsPipe bool
	// OnExit is called when the program has exited and all of its output has been written, or is nil.
	OnExit func()
}

// Spawner starts programs that do not outlive this process. It can kill all of them.
type Spawner struct {
	readEnd, writeEnd *os.File // nothing is ever written; both ends are close-on-exec

	mu     sync.Mutex
	killed bool
	live   map[*Process]struct{}
}

// NewSpawner returns a spawner. Its programs stop at Close, or when this process exits.
func NewSpawner() (*Spawner, error) {
	readEnd, writeEnd, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open the pipe that stops child processes: %w", err)
	}
	return &Spawner{readEnd: readEnd, writeEnd: writeEnd, live: map[*Process]struct{}{}}, nil
}

// Close stops the programs that are still running. It does not wait for them.
func (s *Spawner) Close() error {
	return errors.Join(s.writeEnd.Close(), s.readEnd.Close())
}

// Process is a started program.
type Process struct {
	spawner *Spawner
	cmd     *exec.Cmd
	guard   *exec.Cmd // leader of the program's process group; nil for a program that reads the pipe itself
	ended   chan struct{}
}

// Start starts a program.
func (s *Spawner) Start(c Command) (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.killed {
		return nil, fmt.Errorf("start %s: shutting down", c.Args[0])
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...) //nolint:gosec,noctx // the caller chooses the program and when to stop it
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Stdout, c.Stderr
	cmd.WaitDelay = outputAfterExit
	// In a process group of its own, a program does not receive Ctrl-C from the terminal. This process stops the programs in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := &Process{spawner: s, cmd: cmd, ended: make(chan struct{})}
	if c.ReadsPipe {
		cmd.ExtraFiles = []*os.File{s.readEnd}
	} else {
		p.guard = exec.Command("/bin/sh", "-c", guardScript) //nolint:noctx // it ends with the program
		p.guard.Stdin, p.guard.SysProcAttr = s.readEnd, &syscall.SysProcAttr{Setpgid: true}
		if err := p.guard.Start(); err != nil {
			return nil, fmt.Errorf("start the guard of %s: %w", c.Args[0], err)
		}
		cmd.SysProcAttr.Pgid = p.guard.Process.Pid
	}
	if err := cmd.Start(); err != nil {
		p.killGroup()
		return nil, fmt.Errorf("start %s: %w", c.Args[0], err)
	}
	s.live[p] = struct{}{}
	go p.wait(c.OnExit)
	return p, nil
}

// wait waits until the program has exited and ends its process group.
func (p *Process) wait(onExit func()) {
	defer close(p.ended)
	_ = p.cmd.Wait()
	p.spawner.mu.Lock()
	delete(p.spawner.live, p)
	p.killGroup()
	p.spawner.mu.Unlock()
	if onExit != nil {
		onExit()
	}
}

// killGroup kills the guard and the processes that the program left in its group. The group's ID is not reused before the
// guard has been waited for.
func (p *Process) killGroup() {
	if p.guard != nil {
		_ = syscall.Kill(-p.guard.Process.Pid, syscall.SIGKILL)
		_ = p.guard.Wait()
	}
}

// KillAll kills all programs and prevents further starts.
func (s *Spawner) KillAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = true
	for p := range s.live {
		p.send(syscall.SIGKILL)
	}
}

// signal sends a signal to the program's process group, unless the program has exited.
func (p *Process) signal(number syscall.Signal) {
	p.spawner.mu.Lock()
	defer p.spawner.mu.Unlock()
	if _, live := p.spawner.live[p]; live {
		p.send(number)
	}
}

// send sends a signal to a live program. The caller holds the spawner's mutex.
func (p *Process) send(number syscall.Signal) {
	if p.guard == nil {
		_ = p.cmd.Process.Signal(number)
		return
	}
	_ = syscall.Kill(-p.guard.Process.Pid, number)
}

// Done returns a channel that is closed when the program has exited.
func (p *Process) Done() <-chan struct{} { return p.ended }

// ExitCode waits until the program has exited and returns its exit code. If a signal killed it, the exit code is 128 plus
// the number of the signal.
func (p *Process) ExitCode() int {
	<-p.ended
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitBySignal + int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Stop sends SIGTERM to the program's process group, waits, and kills it after the grace period. It reports whether the
// program exited within the grace period.
func (p *Process) Stop(grace time.Duration) bool {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return true
	case <-time.After(grace):
		p.signal(syscall.SIGKILL)
		<-p.ended
		return false
	}
}

// Run runs a program until it exits and returns its exit code. If ctx is done first, Run stops the program.
func (s *Spawner) Run(ctx context.Context, c Command) (int, error) {
	p, err := s.Start(c)
	if err != nil {
		return 0, err
	}
	select {
	case <-p.Done():
		return p.ExitCode(), nil
	case <-ctx.Done():
		p.Stop(stopGrace)
		return 0, fmt.Errorf("run %s: %w", c.Args[0], context.Cause(ctx))
	}
}

// Output runs a program until it exits and returns its standard output. If the program fails, Output returns an
// *ExitError with its standard error.
func (s *Spawner) Output(ctx context.Context, c Command) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	code, err := s.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	if code != 0 {
		return nil, &ExitError{Args: c.Args, Code: code, Stderr: strings.TrimSpace(stderr.String())}
	}
	return stdout.Bytes(), nil
}

// ExitError reports that a program failed.
type ExitError struct {
	Args   []string
	Code   int
	Stderr string
}

// Error returns the command line, the exit code and the standard error.
func (e *ExitError) Error() string {
	text := fmt.Sprintf("%s: %s", strings.Join(e.Args, " "), Describe(e.Code))
	if e.Stderr != "" {
		text += "\n" + e.Stderr
	}
	return text
}

// Describe returns a description of an exit code.
func Describe(code int) string {
	text := "exit code " + strconv.Itoa(code)
	if number := code - exitBySignal; number > 0 && number < 32 {
		text += ", signal: " + syscall.Signal(number).String()
	}
	return text
}
