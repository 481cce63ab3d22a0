// Package reaper runs programs that must not outlive the process that started them, on any Unix.
//
// A Spawner starts each program through a reaper, a small parent process that runs Main. The reaper reads the
// ParentPipe. When the pipe reaches its end, because the spawning process has exited or was killed, the reaper stops the
// program's whole process group.
package reaper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// The file descriptors that a reaper inherits.
const (
	parentPipeFD = 3 // read end of the parent pipe
	reportFD     = 4 // receives one line: the process ID of the program, or why it could not be started
)

// orphanGrace is how long a program may take to stop after the parent pipe has reached its end.
const orphanGrace = 5 * time.Second

// exitBySignal is added to the number of a signal to form the exit code of a program that the signal killed, as in shells.
const exitBySignal = 128

// Main is the reaper process. It runs the command line args in a new process group, forwards signals to the group and
// returns the exit code of the program. When the parent pipe reaches its end, it stops the group.
func Main(args []string) int {
	report := os.NewFile(reportFD, "report")
	parentPipe := os.NewFile(parentPipeFD, "parent pipe")
	syscall.CloseOnExec(parentPipeFD)
	syscall.CloseOnExec(reportFD)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)

	if len(args) == 0 {
		return reportFailure(report, errors.New("missing program"))
	}
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // the caller chooses the program; the parent pipe ends it
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return reportFailure(report, err)
	}
	group := cmd.Process.Pid
	_, _ = fmt.Fprintln(report, group)
	_ = report.Close()

	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	watch(group, signals, endOf(parentPipe), ended)
	_ = syscall.Kill(-group, syscall.SIGKILL) // processes that the program left in its group
	return exitCode(cmd.ProcessState)
}

// reportFailure reports why the program could not be started and returns the exit code that shells use for that.
func reportFailure(report io.WriteCloser, err error) int {
	_, _ = fmt.Fprintln(report, err)
	_ = report.Close()
	return 126
}

// watch forwards signals to the group, stops an orphaned group, and returns when the program has exited.
func watch(group int, signals <-chan os.Signal, orphaned, ended <-chan struct{}) {
	var overdue <-chan time.Time
	for {
		select {
		case <-ended:
			return
		case s := <-signals:
			if number, ok := s.(syscall.Signal); ok {
				_ = syscall.Kill(-group, number)
			}
		case <-orphaned:
			orphaned = nil
			_ = syscall.Kill(-group, syscall.SIGTERM)
			overdue = time.After(orphanGrace)
		case <-overdue:
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
	}
}

// endOf returns a channel that is closed when the pipe has no writer any more.
func endOf(parentPipe io.Reader) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, parentPipe)
	}()
	return ended
}

func exitCode(state *os.ProcessState) int {
	if state == nil {
		return 1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitBySignal + int(status.Signal())
	}
	return state.ExitCode()
}

// Describe returns a description of an exit code.
func Describe(code int) string {
	if number := code - exitBySignal; number > 0 && number < 32 {
		return "exit code " + strconv.Itoa(code) + ", signal: " + syscall.Signal(number).String()
	}
	return "exit code " + strconv.Itoa(code)
}
