package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A runner runs parts and collects what they did.
type runner struct {
	list      list
	builder   *builder
	converter string // The path of test2json.
	began     time.Time
	installed map[string]error // By script.

	mu      sync.Mutex // Guards the fields below.
	output  io.Writer
	results map[string]*result
	shared  *controlPlane
}

// A result is what a part did.
type result struct {
	part     string
	used     duration
	outcomes []outcome
	failures []string // What failed besides the tests of a package.
}

// binariesVariable names the directory that keeps test binaries.
const binariesVariable = "EINMAL_TEST_BINARIES"

// lock waits until no other process uses a directory with test binaries, and returns what ends this use. It prints that it waits.
func lock(to io.Writer, directory string) (unlock func(), err error) {
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return nil, fmt.Errorf("create a directory for test binaries: %w", err)
	}
	file, err := os.Create(filepath.Join(directory, "lock"))
	if err != nil {
		return nil, fmt.Errorf("lock the directory of test binaries: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintf(to, "waiting until another run of tests does not use %s any more\n", directory)
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	}
	return func() { _ = file.Close() }, nil // The end of the process ends the lock too.
}

// runParts builds and runs parts, prints a report and returns an error if something failed.
func runParts(ctx context.Context, to io.Writer, of list, chosen []part, listed int) error {
	directory, err := filepath.Abs(cmp.Or(os.Getenv(binariesVariable), "bin/tests"))
	if err != nil {
		return fmt.Errorf("find the directory of test binaries: %w", err)
	}
	unlock, err := lock(to, directory)
	if err != nil {
		return err
	}
	defer unlock()
	builds, err := newBuilder(ctx, directory, of.folders)
	if err != nil {
		return err
	}
	converter, err := exec.CommandContext(ctx, "go", "tool", "-n", "test2json").Output()
	if err != nil {
		return fmt.Errorf("find test2json: %w", err)
	}
	of.raced = slices.ContainsFunc(chosen, func(one part) bool { return one.name == raceQuick })
	r := &runner{
		list: of, converter: strings.TrimSpace(string(converter)), builder: builds, began: time.Now(),
		installed: map[string]error{}, output: to, results: map[string]*result{},
	}
	defer r.stopControlPlane()
	r.install(ctx, chosen)
	r.runTogether(ctx, chosen)
	r.stopControlPlane()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("run the tests: %w", context.Cause(ctx))
	}
	return r.report(to, chosen, listed)
}

// runTogether runs the parts that wait beside the others, and then those that run alone.
func (r *runner) runTogether(ctx context.Context, chosen []part) {
	inOrder := func(choose func(part) bool) {
		for _, one := range chosen {
			if choose(one) {
				r.runPart(ctx, one)
			}
		}
	}
	var lanes sync.WaitGroup
	lanes.Go(func() { inOrder(func(one part) bool { return one.waits }) })
	lanes.Go(func() { inOrder(func(one part) bool { return !one.waits && !one.alone }) })
	lanes.Wait()
	inOrder(func(one part) bool { return one.alone })
}

// runPart runs the runs of a part one after the other.
func (r *runner) runPart(ctx context.Context, one part) {
	into := &result{part: one.name}
	r.mu.Lock()
	r.results[one.name] = into
	r.mu.Unlock()
	began := time.Now()
	for _, run := range one.runs {
		if ctx.Err() != nil {
			return
		}
		r.runOnce(ctx, into, run)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	into.used.wall = time.Since(began)
}

// runOnce installs what the run needs, builds its binaries and runs them, as many at a time as there are processors.
func (r *runner) runOnce(ctx context.Context, into *result, one run) {
	title := into.part
	if one.title != "" {
		title += ": " + one.title
	}
	for _, script := range one.install {
		if err := r.installed[script]; err != nil {
			r.fail(into, "%s: %s: %v", title, script, err)
			return
		}
	}
	if one.needs != nil {
		if lacking := one.needs(ctx); lacking != "" {
			r.print("== [%s] %s: not run, because this machine cannot run it\n%s\n", r.elapsed(), title, lacking)
			return
		}
	}
	programs := r.build(ctx, into, title, one)
	env := []string{"EINMAL_DEVCLUSTER=" + devcluster()}
	if one.cluster {
		kubeconfig, err := r.controlPlane(ctx)
		if err != nil {
			r.fail(into, "%s: %v", title, err)
			return
		}
		env = append(env, kubeconfigVariable+"="+kubeconfig)
	}
	r.print("== [%s] %s: running the tests of %d packages\n", r.elapsed(), title, len(programs))
	places := make(chan struct{}, runtime.NumCPU())
	var running sync.WaitGroup
	for _, program := range programs {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			program.env = slices.Concat(env, one.env, r.builder.environment(program.folder))
			r.add(into, test(ctx, program))
		})
	}
	running.Wait()
}

// build builds the binaries of a run, and returns those that could be built.
func (r *runner) build(ctx context.Context, into *result, title string, one run) []testProgram {
	var wanted []binary
	for _, folder := range slowestFirst(r.list.folders) {
		if one.testsOf(folder, r.list) != nil {
			wanted = append(wanted, binary{folder, one.race})
		}
	}
	began := time.Now()
	r.print("== [%s] %s: building the tests of %d packages\n", r.elapsed(), title, len(wanted))
	failed := r.builder.build(ctx, wanted)
	var programs []testProgram
	for _, each := range wanted {
		if err := failed[each]; err != nil {
			r.fail(into, "%s: %s: %v", title, each.folder, err)
			continue
		}
		arguments := one.testsOf(each.folder, r.list)
		if one.shuffle {
			arguments = append(arguments, "-test.shuffle=on")
		}
		programs = append(programs, testProgram{each.folder, r.builder.program(each), r.converter, arguments, nil, one.timeout})
	}
	r.print("-- [%s] %s: built in %ds\n", r.elapsed(), title, int(time.Since(began).Seconds()))
	return programs
}

// slowestFirst returns the folders of operators first: their tests take longest, and no processor should wait for them at the end.
func slowestFirst(folders []string) []string {
	slow := func(folder string) int {
		switch {
		case strings.HasPrefix(folder, "operators/"):
			return 0
		case strings.HasPrefix(folder, "test/"):
			return 1
		}
		return 2
	}
	return slices.SortedStableFunc(slices.Values(folders), func(a, b string) int { return slow(a) - slow(b) })
}

// install runs the scripts that parts need, one after the other: apt-get does not run twice at the same time. Exit code 3 stands for a notice,
// which the script has printed.
func (r *runner) install(ctx context.Context, chosen []part) {
	for _, one := range chosen {
		for _, run := range one.runs {
			for _, script := range run.install {
				if _, done := r.installed[script]; done {
					continue
				}
				fmt.Fprintf(r.output, "== [%s] %s\n", r.elapsed(), script)
				command := exec.CommandContext(ctx, script) //nolint:gosec // The scripts are those of parts.
				command.Stdout, command.Stderr = r.output, r.output
				err := command.Run()
				if err != nil && command.ProcessState.ExitCode() == 3 {
					err = nil
				}
				r.installed[script] = err
			}
		}
	}
}

// add adds the outcome of a package and prints it.
func (r *runner) add(into *result, one outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	into.outcomes = append(into.outcomes, one)
	into.used.cpu += one.used.cpu
	verdict := "ok  "
	if one.err != nil {
		verdict = "FAIL"
		fmt.Fprint(r.output, one.printed)
	}
	fmt.Fprintf(r.output, "%s\t%s\t%.1fs\t(%s, %.0f CPU seconds)\n", verdict, one.folder, one.used.wall.Seconds(), into.part, one.used.cpu.Seconds())
}

// fail notes and prints a failure.
func (r *runner) fail(into *result, format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	r.print("-- FAILED: %s\n", text)
	r.mu.Lock()
	defer r.mu.Unlock()
	into.failures = append(into.failures, text)
}

func (r *runner) print(format string, arguments ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.output, format, arguments...)
}

func (r *runner) elapsed() string { return minutes(time.Since(r.began)) }

// minutes formats a duration like 2:05.
func minutes(of time.Duration) string {
	seconds := int(of.Seconds())
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// devcluster returns the path of devcluster: the value of the environment variable EINMAL_DEVCLUSTER, by default bin/devcluster.
func devcluster() string {
	if path := os.Getenv("EINMAL_DEVCLUSTER"); path != "" {
		return path
	}
	path, err := filepath.Abs("bin/devcluster")
	if err != nil {
		return "bin/devcluster"
	}
	return path
}

// nodeRequirements returns what a real node of devcluster needs and this machine lacks.
func nodeRequirements(ctx context.Context) string {
	printed, err := exec.CommandContext(ctx, "tools/node-probe.sh").Output()
	if err != nil {
		return err.Error()
	}
	var lacking []string
	for line := range strings.Lines(string(printed)) {
		if strings.Contains(line, " no: ") && !strings.HasPrefix(line, "lower the OOM score") {
			lacking = append(lacking, strings.TrimSpace(line))
		}
	}
	return strings.Join(lacking, "\n")
}
