// Package process runs a subject, and measures from outside what it uses.
package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How long a process may take to rest, and to end after it was asked to.
const (
	restTimeout = time.Minute
	stopTimeout = 30 * time.Second
)

// A process rests when it uses less CPU time than this in such a while.
const (
	while  = 500 * time.Millisecond
	little = 3 * time.Millisecond
)

// Process is a running subject.
type Process struct {
	command  *exec.Cmd
	profiles string
	ended    chan error
}

// Start runs a program whose arguments are args, and -pprof-bind-address with an address that is free. Its output goes to a file.
func Start(program, output string, args ...string) (*Process, error) {
	address, err := free()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(output)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p := &Process{profiles: "http://" + address + "/debug/pprof/allocs?debug=1", ended: make(chan error, 1)}
	p.command = exec.Command(program, append(args, "-pprof-bind-address", address)...) //nolint:noctx,gosec // Stop ends it; the caller names it.
	p.command.Stdout, p.command.Stderr = log, log
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() { p.ended <- p.command.Wait() }()
	return p, nil
}

// free returns an address on loopback with a free port.
func free() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // At once.
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// Stop ends the process.
func (p *Process) Stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		return err
	case <-time.After(stopTimeout):
		return errors.Join(errors.New("the subject does not stop"), p.command.Process.Kill())
	}
}

// Use is what a process has used since it began.
type Use struct {
	CPU time.Duration
	// Allocated is in bytes, also what was freed since.
	Allocated uint64
}

// Use measures.
func (p *Process) Use(ctx context.Context) (Use, error) {
	cpu, err := p.cpu()
	if err != nil {
		return Use{}, err
	}
	allocated, err := p.allocated(ctx)
	return Use{CPU: cpu, Allocated: allocated}, err
}

// cpu adds up the time of all threads. Those of Go programs do not end.
func (p *Process) cpu() (time.Duration, error) {
	threads, err := filepath.Glob(p.file("task/*/schedstat"))
	if err != nil {
		return 0, err
	}
	if len(threads) == 0 {
		return 0, errors.New("the subject has ended; see its log")
	}
	sum := int64(0)
	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		used, _, _ := strings.Cut(string(content), " ")
		nanoseconds, err := strconv.ParseInt(used, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", thread, err)
		}
		sum += nanoseconds
	}
	return time.Duration(sum), nil
}

func (p *Process) file(name string) string {
	return filepath.Join("/proc", strconv.Itoa(p.command.Process.Pid), name)
}

// allocated asks the process how many bytes it has allocated.
func (p *Process) allocated(ctx context.Context) (uint64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.profiles, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	return totalAlloc(response.Body)
}

// totalAlloc reads a profile of memory in its form for people.
func totalAlloc(profile io.Reader) (uint64, error) {
	for lines := bufio.NewScanner(profile); lines.Scan(); {
		if bytes, found := strings.CutPrefix(lines.Text(), "# TotalAlloc = "); found {
			return strconv.ParseUint(bytes, 10, 64)
		}
	}
	return 0, errors.New("the profile does not say how much was allocated")
}

// Memory is how much memory a process has, in bytes: what belongs to no file, and the most that it has had in all.
type Memory struct{ Anonymous, Peak uint64 }

// Memory measures.
func (p *Process) Memory() (Memory, error) {
	content, err := os.ReadFile(p.file("status"))
	if err != nil {
		return Memory{}, err
	}
	return memory(string(content))
}

// memory reads /proc/PID/status.
func memory(status string) (found Memory, err error) {
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		var into *uint64
		switch name {
		case "RssAnon":
			into = &found.Anonymous
		case "VmHWM":
			into = &found.Peak
		default:
			continue
		}
		kilobytes, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return Memory{}, fmt.Errorf("line %q: %w", line, err)
		}
		*into = kilobytes << 10
	}
	if found.Anonymous == 0 || found.Peak == 0 {
		return Memory{}, errors.New("the kernel does not say how much memory the process has")
	}
	return found, nil
}

// Rest waits until the process has nothing left to do.
func (p *Process) Rest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, restTimeout)
	defer cancel()
	before, err := p.cpu()
	for err == nil {
		select {
		case <-ctx.Done():
			return errors.New("the subject does not come to rest")
		case <-time.After(while):
		}
		var now time.Duration
		if now, err = p.cpu(); now-before < little {
			return err
		}
		before = now
	}
	return err
}
