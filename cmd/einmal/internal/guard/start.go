package guard

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

// outputAfterEnd is how long output is still read after a program has ended, when someone else holds its pipe.
const outputAfterEnd = 2 * time.Second

// stopGrace is what a program started by Run has to end in, once it is told to stop.
const stopGrace = 5 * time.Second

// Command is a program to start.
type Command struct {
	// Args is the command line, the program first.
	Args []string
	// Dir is the directory to run in; empty means the current one.
	Dir string
	// Env is the environment; nil means that of this process.
	Env []string
	// Stdout and Stderr take what the program writes.
	Stdout, Stderr io.Writer
}

// Starter starts programs that end with this one, and can end them all at once.
type Starter struct {
	guard    []string
	lifeline *Lifeline

	mu     sync.Mutex
	killed bool
	live   map[*Process]struct{}
}

// NewStarter returns a starter whose programs hang on the lifeline. The guard is the command line that calls Main
// with the arguments that follow it.
func NewStarter(lifeline *Lifeline, guard ...string) *Starter {
	return &Starter{guard: guard, lifeline: lifeline, live: map[*Process]struct{}{}}
}

// Process is a program that was started.
type Process struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	unlist func()

	mu     sync.Mutex
	group  int // the process group to kill; 0 as long as it is not known
	killed bool
}

// Start starts a program beneath a guard.
func (s *Starter) Start(c Command) (*Process, error) {
	if len(s.guard) == 0 || len(c.Args) == 0 {
		return nil, errors.New("no guard or no program given")
	}
	reports, report, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open the pipe to the guard of %s: %w", c.Args[0], err)
	}
	defer func() { _ = reports.Close() }()
	cmd := s.command(c, append(append([]string{}, s.guard...), c.Args...))
	cmd.ExtraFiles = []*os.File{s.lifeline.read, report}
	p, err := s.launch(cmd)
	_ = report.Close()
	if err != nil {
		return nil, fmt.Errorf("start the guard of %s: %w", c.Args[0], err)
	}
	line, _ := bufio.NewReader(reports).ReadString('\n')
	line = strings.TrimSpace(line)
	group, err := strconv.Atoi(line)
	if err != nil {
		<-p.Done()
		if line == "" {
			line = "its guard ended early (" + Describe(p.ExitCode()) + ")"
		}
		return nil, fmt.Errorf("start %s: %s", c.Args[0], line)
	}
	p.setGroup(group)
	return p, nil
}

// StartUnguarded starts a program that reads the lifeline by itself, at file descriptor 3.
func (s *Starter) StartUnguarded(c Command) (*Process, error) {
	cmd := s.command(c, c.Args)
	cmd.ExtraFiles = []*os.File{s.lifeline.read}
	p, err := s.launch(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Args[0], err)
	}
	p.setGroup(cmd.Process.Pid)
	return p, nil
}

func (s *Starter) command(c Command, args []string) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // what to run is for the caller to say, when to end it too
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.Dir, c.Env, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process, which ends the others in order
	cmd.WaitDelay = outputAfterEnd
	return cmd
}

func (s *Starter) launch(cmd *exec.Cmd) (*Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.killed {
		return nil, errors.New("everything is being ended")
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

// KillAll ends all programs at once, without asking them, and starts none any more.
func (s *Starter) KillAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed = true
	for p := range s.live {
		p.Kill()
	}
}

// Run runs a program to its end and returns its exit code. When ctx ends first, the program is told to stop.
func (s *Starter) Run(ctx context.Context, c Command) (int, error) {
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

// Output runs a program to its end and returns what it wrote to its standard output. A program that fails is an
// error which holds what it wrote to its standard error.
func (s *Starter) Output(ctx context.Context, c Command) ([]byte, error) {
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

// ExitError is the failure of a program that was run.
type ExitError struct {
	Args   []string
	Code   int
	Stderr string
}

// Error names the command line, how it ended and what it wrote.
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
		p.Kill() // a guard that was killed can no longer end its group
	}
	p.unlist()
	close(p.ended)
}

// setGroup says which group to kill, once that is known.
func (p *Process) setGroup(group int) {
	p.mu.Lock()
	p.group = group
	killed := p.killed
	p.mu.Unlock()
	if killed {
		p.Kill()
	}
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.ended }

// ExitCode returns the exit code of a program that has ended; 128 and more stands for a signal.
func (p *Process) ExitCode() int {
	<-p.ended
	return exitCode(p.cmd.ProcessState)
}

// Kill ends the program's whole process group without asking.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	select {
	case <-p.ended: // the number of the group may by now be another's
	default:
		if p.group > 0 {
			_ = syscall.Kill(-p.group, syscall.SIGKILL)
		}
	}
}

// Stop asks the program to end, waits for it, and kills it when it takes longer than grace. It tells whether the
// program ended by itself.
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
