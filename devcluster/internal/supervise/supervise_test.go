package supervise

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// roleVariable makes the test binary act as a child or as a parent.
	roleVariable = "SUPERVISE_TEST_ROLE"
	grace        = 10 * time.Second
	waitTimeout  = 30 * time.Second
)

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		m.Run()
	case "parent":
		os.Exit(runParent(os.Stdout)) //nolint:forbidigo // the process acts as a parent and runs no tests
	default:
		os.Exit(runChild(role, os.Stdout)) //nolint:forbidigo // the process acts as a child and runs no tests
	}
}

// runChild behaves according to its role until it is stopped.
func runChild(role string, out io.Writer) int {
	if err := ExitWithParent(); err != nil {
		fmt.Fprintln(out, err)
		return 9
	}
	switch role {
	case "fails":
		fmt.Fprintln(out, "first line")
		fmt.Fprintln(out, "no disk, no fun")
		return 4
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "copies":
		pid, err := startCopy()
		if err != nil {
			fmt.Fprintln(out, err)
			return 5
		}
		fmt.Fprintln(out, pid)
	}
	fmt.Fprintln(out, "up")
	select {}
}

// startCopy starts this program again as an obedient child. It returns its process ID, or an error if the garbage collector closes what both have
// inherited.
func startCopy() (int, error) {
	before, err := inherited()
	if err != nil {
		return 0, err
	}
	if err := os.Setenv(roleVariable, "obedient"); err != nil {
		return 0, err
	}
	pid, err := StartCopy(os.Args[1:]...)
	if err != nil {
		return 0, err
	}
	for range 2 { // One round can end while it still closes other files.
		if err := collect(); err != nil {
			return 0, err
		}
	}
	if after, err := inherited(); err != nil || after != before {
		return 0, fmt.Errorf("what the process has inherited is %v, want %v: %w", after, before, err)
	}
	return pid, nil
}

// inherited returns the inodes of what a child inherits.
func inherited() ([2]uint64, error) {
	var pipe, hold syscall.Stat_t
	err := errors.Join(syscall.Fstat(parentPipeFD, &pipe), syscall.Fstat(holdFD, &hold))
	return [2]uint64{pipe.Ino, hold.Ino}, err
}

// collect runs the garbage collector until it has closed a file that nothing uses:
// the write end of a pipe.
func collect() error {
	r, _, err := os.Pipe()
	if err != nil {
		return err
	}
	for {
		runtime.GC()
		if err := r.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			return err
		}
		if _, err := r.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
			return r.Close()
		}
	}
}

// runParent starts a child and waits until it is killed.
func runParent(out *os.File) int {
	group, err := NewGroup(out)
	if err != nil {
		return 8
	}
	if err := os.Setenv(roleVariable, "obedient"); err != nil {
		return 7
	}
	child, err := group.Start(spec("child", os.Args[1]))
	if err != nil {
		return 6
	}
	fmt.Fprintln(out, child.PID())
	select {}
}

func spec(name, dir string) Spec {
	return Spec{
		Name: name, Program: os.Args[0], Args: []string{dir}, Dir: dir,
		LogFile: filepath.Join(dir, name+".log"),
	}
}

func newGroup(t *testing.T) *Group {
	t.Helper()
	hold, err := os.Create(filepath.Join(t.TempDir(), "hold"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hold.Close() })
	group, err := NewGroup(hold)
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// start starts a child with a role and waits until it is running.
func start(t *testing.T, group *Group, role string) *Process {
	t.Helper()
	t.Setenv(roleVariable, role)
	p, err := group.Start(spec(role, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if role != "fails" {
		eventually(t, func() bool { return strings.Contains(output(t, p), "up\n") })
	}
	return p
}

// output returns what a process has written. It fails the test if the process has
// ended.
func output(t *testing.T, p *Process) string {
	t.Helper()
	content, err := os.ReadFile(p.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.exited:
		t.Fatalf("%s ended (%s): %s", p.Name, p.Reason(), content)
	default:
	}
	return string(content)
}

func eventually(t *testing.T, check func() bool) {
	t.Helper()
	deadline := time.After(waitTimeout)
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !check() {
		select {
		case <-deadline:
			t.Fatalf("the condition is not true after %s", waitTimeout)
		case <-ticker.C:
		}
	}
}

func gone(pid int) bool { return syscall.Kill(pid, 0) != nil }

func TestStop(t *testing.T) {
	group := newGroup(t)
	p := start(t, group, "obedient")
	if err := group.Stop(grace, p); err != nil {
		t.Error(err)
	}
	if !gone(p.PID()) {
		t.Error("the process still exists")
	}
	select {
	case p := <-group.Failed():
		t.Errorf("the stopped process %s was reported as failed", p.Name)
	default:
	}
	if err := group.Stop(grace, p); err != nil {
		t.Errorf("a second stop: %v", err)
	}
	if err := group.Close(); err != nil {
		t.Error(err)
	}
}

func TestStopKillsAProcessThatIgnoresSIGTERM(t *testing.T) {
	group := newGroup(t)
	stubborn, obedient := start(t, group, "stubborn"), start(t, group, "obedient")
	err := group.Stop(50*time.Millisecond, stubborn, obedient) // On a busy machine, obedient may also need longer.
	if err == nil || !strings.Contains(err.Error(), "stop stubborn: killed") {
		t.Errorf("error %v, want one that names the process stubborn", err)
	}
	if !gone(stubborn.PID()) || !gone(obedient.PID()) {
		t.Error("a process still exists")
	}
}

func TestFailure(t *testing.T) {
	group := newGroup(t)
	start(t, group, "fails")
	select {
	case p := <-group.Failed():
		if p.Name != "fails" || p.Reason() != "exit status 4" {
			t.Errorf("failed process %s (%s), want fails (exit status 4)", p.Name, p.Reason())
		}
		tail, err := Tail(p.LogFile, 1)
		if err != nil || string(tail) != "no disk, no fun" {
			t.Errorf("the log ends with %q, %v", tail, err)
		}
	case <-time.After(waitTimeout):
		t.Errorf("the failure was not reported within %s", waitTimeout)
	}
}

func TestCloseStopsRunningProcesses(t *testing.T) {
	group := newGroup(t)
	p := start(t, group, "stubborn")
	if err := group.Close(); err != nil {
		t.Error(err)
	}
	if !gone(p.PID()) {
		t.Error("the process still exists")
	}
}

func TestChildExitsWithKilledParent(t *testing.T) {
	t.Setenv(roleVariable, "parent")
	group := newGroup(t)
	dir := t.TempDir()
	parent, err := group.Start(spec("parent", dir))
	if err != nil {
		t.Fatal(err)
	}
	var child int
	eventually(t, func() bool {
		tail, err := Tail(parent.LogFile, 1)
		if err == nil {
			child, err = strconv.Atoi(string(tail))
		}
		return err == nil
	})
	if gone(child) {
		t.Fatal("the child does not exist")
	}
	if err := syscall.Kill(parent.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return gone(child) })
}

func TestACopyExitsWithTheParentOfBoth(t *testing.T) {
	group := newGroup(t)
	p := start(t, group, "copies")
	var copied int
	eventually(t, func() bool {
		for line := range strings.Lines(output(t, p)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
				copied = pid
			}
		}
		return copied != 0
	})
	if err := group.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, func() bool { return gone(copied) })
}

func TestLogOfPreviousRunIsKept(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	for _, text := range []string{"first\n", "second\n"} {
		file, err := openLog(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{name: "second", name + ".1": "first"} {
		if got, err := Tail(file, 5); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
}
