package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// An outcome is what the tests of one package did in one run.
type outcome struct {
	folder                  string
	err                     error
	used                    duration
	passed, failed, skipped int // Tests, without subtests.
	slow                    []timedTest
	printed                 string // The output of what failed.
}

// A timedTest is a test, without its subtests, and how long it took.
type timedTest struct {
	folder, name string
	took         time.Duration
}

// An event is a line of "go tool test2json".
type event struct {
	Action, Test, Output string
	Elapsed              float64 // Seconds.
}

// A testProgram is a test binary with its arguments.
type testProgram struct {
	folder, path string
	converter    string // The path of test2json.
	arguments    []string
	env          []string
	timeout      time.Duration
}

// test runs a test binary in the folder of its package, as "go test" does. It ends the binary a minute after the timeout, which the binary itself
// must keep.
func test(ctx context.Context, program testProgram) outcome {
	ctx, cancel := context.WithTimeout(ctx, program.timeout+time.Minute)
	defer cancel()
	result, began := outcome{folder: program.folder}, time.Now()
	arguments := append([]string{"-t", program.path, "-test.v=test2json", "-test.paniconexit0", "-test.timeout=" + program.timeout.String()},
		program.arguments...)
	command := exec.CommandContext(ctx, program.converter, arguments...) //nolint:gosec // It is a tool of Go, and runs what this program has built.
	command.Dir = program.folder
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.Env = append(command.Environ(), program.env...)
	command.WaitDelay = 10 * time.Second
	var complaints bytes.Buffer
	command.Stderr = &complaints
	output, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		result.err = fmt.Errorf("start the tests of %s: %w", program.folder, err)
		return result
	}
	record := newRecord(program.folder)
	readErr := record.read(output)
	result.err = errors.Join(readErr, command.Wait())
	result.used = duration{cpu: cpuOf(command), wall: time.Since(began)}
	record.fill(&result)
	if result.err != nil {
		result.printed += complaints.String()
	}
	return result
}

// A record collects events.
type record struct {
	folder  string
	order   []string // Tests and "", in the order of their first output.
	output  map[string]*strings.Builder
	results map[string]event
}

func newRecord(folder string) *record {
	return &record{folder: folder, output: map[string]*strings.Builder{}, results: map[string]event{}}
}

// read reads all events. It forgets what a test printed once the test has passed.
func (r *record) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.add(line)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the output of the tests of %s: %w", r.folder, err)
		}
	}
}

func (r *record) add(line []byte) {
	var one event
	if err := json.Unmarshal(line, &one); err != nil {
		one = event{Action: "output", Output: string(line)}
	}
	switch one.Action {
	case "output":
		output := r.output[one.Test]
		if output == nil {
			output = &strings.Builder{}
			r.output[one.Test] = output
			r.order = append(r.order, one.Test)
		}
		output.WriteString(one.Output)
	case "pass", "fail", "skip":
		r.results[one.Test] = one
		if one.Action != "fail" && one.Test != "" {
			delete(r.output, one.Test)
			r.order = slices.DeleteFunc(r.order, func(name string) bool { return name == one.Test })
		}
	}
}

// fill adds the results to an outcome. Of a failed package, it prints what belongs to tests that did not pass.
func (r *record) fill(result *outcome) {
	for name, one := range r.results {
		if name == "" || strings.Contains(name, "/") {
			continue
		}
		switch one.Action {
		case "pass":
			result.passed++
		case "skip":
			result.skipped++
		case "fail":
			result.failed++
		}
		result.slow = append(result.slow, timedTest{r.folder, name, time.Duration(one.Elapsed * float64(time.Second))})
	}
	if result.err == nil {
		return
	}
	var printed strings.Builder
	for _, name := range r.order {
		printed.WriteString(r.output[name].String())
	}
	result.printed = printed.String()
}
