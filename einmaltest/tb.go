package einmaltest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// Failed reports whether this run has failed so far.
func (w *World) Failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.failures) > 0
}

// Fail lets this run fail, without a word.
func (w *World) Fail() { w.fail("failed") }

// FailNow lets this run fail, and ends it.
func (w *World) FailNow() {
	w.Fail()
	runtime.Goexit()
}

// Error lets this run fail.
func (w *World) Error(args ...any) { w.fail(fmt.Sprintln(args...)) }

// Errorf lets this run fail.
func (w *World) Errorf(format string, args ...any) { w.fail(fmt.Sprintf(format, args...)) }

// Fatal lets this run fail, and ends it.
func (w *World) Fatal(args ...any) {
	w.fail(fmt.Sprintln(args...))
	runtime.Goexit()
}

// Fatalf lets this run fail, and ends it.
func (w *World) Fatalf(format string, args ...any) {
	w.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// Log writes to the log of the test, where one schedule is played only: in Run, and when Explore plays one again.
func (w *World) Log(args ...any) {
	w.Helper()
	if !w.quiet {
		w.TB.Log(args...)
	}
}

// Logf is Log with a format.
func (w *World) Logf(format string, args ...any) {
	w.Helper()
	if !w.quiet {
		w.TB.Logf(format, args...)
	}
}

func (w *World) fail(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, strings.TrimSpace(text))
}

// report notes a failure that the simulation found.
func (w *World) report(err error) {
	w.fail(err.Error())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.simulatorFailures = append(w.simulatorFailures, err.Error())
}

// failed returns all failures, and those of them that the simulation found.
func (w *World) failed() (all, reported []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.failures), slices.Clone(w.simulatorFailures)
}
