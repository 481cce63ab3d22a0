package reaper

import (
	"bufio"
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

// outputAfterExit is how long output is read after a program has exited, if another process still holds its pipe.
const outputAfterExit = 2 * time.Second

// stopGrace is how long a program started by Run may take to stop when the context ends.
const stopGrace = 5 * time.Second

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
}

// Spawner starts programs that do not outlive this process. It can kill all of them.
type Spawner struct {
	reaper     []string
	parentPipe *ParentPipe

	mu     sync.Mutex
	killed bool
	live   map[*Process]struct{}
}

// NewSpawner returns a spawner whose programs stop when parentPipe reaches its end. reaper is the command line that calls
// Main with the arguments that are appended to it.
func NewSpawner(parentPipe *ParentPipe, reaper ...string) *Spawner {
	return &Spawner{reaper: reaper, parentPipe: parentPipe, live: map[*Process]struct{}{}}
}

// Process is a started program.
type Process struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	unlist func()

	mu     sync.Mutex
	group  int // process group to kill; 0 while it is unknown
	killed bool
}

// Start starts a program through a reaper.
func (s *Spawner) Start(c Command) (*Process, error) {
	if len(s.reaper) == 0 || len(c.Args) == 0 {
		return nil, errors.New("start a program: the command line of the reaper or of the program is empty")
	}
	reports, report, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open a pipe to the reaper of %s: %w", c.Args[0], err)
	}
	defer func() { _ = reports.Close() }()
	cmd := s.command(c, append(append([]string{}, s.reaper...), c.Args...))
	cmd.ExtraFiles = []*os.File{s.parentPipe.read, report}
	p, err := s.launch(cmd)
	_ = report.Close()
	if err != nil {
		return nil, fmt.Errorf("start the reaper of %s: %w", c.Args[0], err)
	}
	line, _ := bufio.NewReader(reports).ReadString('\n')
	line = strings.TrimSpace(line)
	group, err := strconv.Atoi(line)
	if err != nil {
		<-p.Done()
		if line == "" {
			line = "its reaper exited early (" + Describe(p.ExitCode()) + ")"
		}
		return nil, fmt.Errorf("start %s: %s", c.Args[0], line)
	}
	p.setGroup(group)
	return p, nil
}

// StartWithoutReaper starts a program that itself reads the parent pipe, at file descriptor 3.
func (s *Spawner) StartWithoutReaper(c Command) (*Process, error) {
	cmd := s.command(c, c.Args)
	cmd.ExtraFiles = []*os.File{s.parentPipe.read}
	p, err := s.launch(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Args[0], err)
	}
	p.setGroup(cmd.Process.Pid)
	return p, nil
}

func (s *Spawner) command(c Command, args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // the caller chooses the program and when to stop it
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal must send Ctrl-C only to this process, which stops the others in order
	cmd.WaitDelay = outputAfterExit
	return cmd
}

func (s *Spawner) launch(cmd *exec.Cmd) (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.killed {
		return nil, errors.New("shutting down")
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	p.unlist = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.live, p)
	}
	s.live[p] = struct{}{}
	go p.wait()
	return p, nil
}

// KillAll kills all programs and prevents further starts.
func (s *Spawner) KillAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = true
	for p := range s.live {
		p.Kill()
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
		return stdout.Bytes(), &ExitError{Args: c.Args, Code: code, Stderr: strings.TrimSpace(stderr.String())}
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

func (p *Process) wait() {
	_ = p.cmd.Wait()
	if p.cmd.ProcessState != nil && !p.cmd.ProcessState.Exited() {
		p.Kill() // the reaper was killed, so it cannot kill the group itself
	}
	p.unlist()
	close(p.ended)
}

// setGroup sets the process group to kill.
func (p *Process) setGroup(group int) {
	p.mu.Lock()
	p.group = group
	killed := p.killed
	p.mu.Unlock()
	if killed {
		p.Kill()
	}
}

// Done returns a channel that is closed when the program has exited.
func (p *Process) Done() <-chan struct{} { return p.ended }

// ExitCode waits until the program has exited and returns its exit code. If a signal killed it, the exit code is 128 plus
// the number of the signal.
func (p *Process) ExitCode() int {
	<-p.ended
	return exitCode(p.cmd.ProcessState)
}

// Kill kills the program's whole process group.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	select {
	case <-p.ended: // the process group ID may have been reused
	default:
		if p.group > 0 {
			_ = syscall.Kill(-p.group, syscall.SIGKILL)
		}
	}
}

// Stop sends SIGTERM to the program, waits, and kills it after the grace period. It reports whether the program exited
// within the grace period.
func (p *Process) Stop(grace time.Duration) bool {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	overdue := time.NewTimer(grace)
	defer overdue.Stop()
	select {
	case <-p.ended:
		return true
	case <-overdue.C:
		p.Kill()
		<-p.ended
		return false
	}
}
