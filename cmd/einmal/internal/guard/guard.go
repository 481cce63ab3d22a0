// Package guard runs programs that must not outlive the one that started them, on any Unix.
//
// Starter is the side of the program that starts others. Each runs beneath a guard, a small process of its own
// (Main), which reads the lifeline and ends the whole process group of the guarded program when the lifeline ends.
package guard

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

// The file descriptors that a guard is started with.
const (
	lifelineFD = 3 // reads the lifeline
	reportFD   = 4 // takes one line: the process id of the guarded program, or why it could not be started
)

// afterLifeline is what a guarded program has to end by itself once the lifeline has ended.
const afterLifeline = 5 * time.Second

// exitBySignal is added to a signal's number for the exit code of a program that the signal ended, as shells do.
const exitBySignal = 128

// Main is the guard. It runs the command line args in a process group of its own, passes signals on to the group,
// and returns the exit code of the program. When the lifeline ends, it ends the group.
func Main(args []string) int {
	report := os.NewFile(reportFD, "report")
	lifeline := os.NewFile(lifelineFD, "lifeline")
	syscall.CloseOnExec(lifelineFD)
	syscall.CloseOnExec(reportFD)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)

	if len(args) == 0 {
		return refuse(report, errors.New("no program to guard"))
	}
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // it is told what to guard, and by the lifeline how long
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return refuse(report, err)
	}
	group := cmd.Process.Pid
	_, _ = fmt.Fprintln(report, group)
	_ = report.Close()

	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	watch(group, signals, endOf(lifeline), ended)
	_ = syscall.Kill(-group, syscall.SIGKILL) // what the program left behind in its group
	return exitCode(cmd.ProcessState)
}

func refuse(report io.WriteCloser, err error) int {
	_, _ = fmt.Fprintln(report, err)
	_ = report.Close()
	return 126
}

// watch returns when the guarded program has ended.
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
			overdue = time.After(afterLifeline)
		case <-overdue:
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
	}
}

// endOf closes its channel when the lifeline has no writer any more.
func endOf(lifeline io.Reader) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, lifeline)
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

// Describe says in words what an exit code means.
func Describe(code int) string {
	if number := code - exitBySignal; number > 0 && number < 32 {
		return "exit code " + strconv.Itoa(code) + ": ended by a signal, " + syscall.Signal(number).String()
	}
	return "exit code " + strconv.Itoa(code)
}
