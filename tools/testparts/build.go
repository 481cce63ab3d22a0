package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// separateModule is the module that is not in the workspace. It has compiler flags of its own.
const separateModule = "devcluster"

// commonFlags are the flags that the Makefile and tools/steps.sh pass too, so that all of them share what Go has compiled.
const commonFlags = "-buildvcs=false -trimpath"

// A builder links the test binary of each package once.
type builder struct {
	directory string // For the binaries; the caller removes it.
	separate  string // The GOFLAGS of the separate module.

	mu    sync.Mutex // One build at a time uses all processors.
	built map[binary]error
	used  duration
}

// A binary identifies a test binary.
type binary struct {
	folder string
	race   bool
}

// duration is the time that something took.
type duration struct {
	cpu, wall time.Duration
}

// newBuilder returns a builder that writes to a directory.
func newBuilder(ctx context.Context, directory string) (*builder, error) {
	flags, err := exec.CommandContext(ctx, separateModule+"/build.sh", "--compiler-flags").Output()
	if err != nil {
		return nil, fmt.Errorf("read the compiler flags of %s: %w", separateModule, err)
	}
	return &builder{
		directory: directory,
		separate:  commonFlags + " " + strings.TrimSpace(string(flags)),
		built:     map[binary]error{},
	}, nil
}

// program returns the path of a binary.
func (b *builder) program(of binary) string {
	name := strings.ReplaceAll(of.folder, "/", "-")
	if of.race {
		name += "-race"
	}
	return filepath.Join(b.directory, name+".test")
}

// environment returns the variables with which go builds and runs the tests of a folder.
func (b *builder) environment(folder string) []string {
	if inSeparateModule(folder) {
		return []string{"GOWORK=off", "GOFLAGS=" + b.separate}
	}
	return []string{"GOFLAGS=" + commonFlags}
}

func inSeparateModule(folder string) bool {
	return folder == separateModule || strings.HasPrefix(folder, separateModule+"/")
}

// build builds the binaries that are not built yet. The result has an error for each binary that could not be built, now or before.
func (b *builder) build(ctx context.Context, wanted []binary) map[binary]error {
	b.mu.Lock()
	defer b.mu.Unlock()
	began := time.Now()
	missing := slices.DeleteFunc(slices.Clone(wanted), func(one binary) bool { _, done := b.built[one]; return done })
	for len(missing) > 0 {
		var batch []binary
		batch, missing = nextBatch(missing)
		b.buildBatch(ctx, batch)
	}
	b.used.wall += time.Since(began)
	failed := map[binary]error{}
	for _, one := range wanted {
		if err := b.built[one]; err != nil {
			failed[one] = err
		}
	}
	return failed
}

// nextBatch splits off the binaries that one command can build: those of a module with the same flags. "go test -c" names each binary after the
// last element of its folder, so these must differ.
func nextBatch(missing []binary) (batch, rest []binary) {
	names := map[string]bool{}
	for _, one := range missing {
		name := path.Base(one.folder)
		if names[name] || one.race != missing[0].race || inSeparateModule(one.folder) != inSeparateModule(missing[0].folder) {
			rest = append(rest, one)
			continue
		}
		names[name] = true
		batch = append(batch, one)
	}
	return batch, rest
}

// buildBatch builds binaries with one command. If it fails, it builds each of them alone, so that the others still run.
func (b *builder) buildBatch(ctx context.Context, batch []binary) {
	err := b.compile(ctx, batch)
	for _, one := range batch {
		b.built[one] = err
		if err != nil && len(batch) > 1 {
			b.built[one] = b.compile(ctx, []binary{one})
		}
	}
}

// compile runs "go test -c". "make check" runs vet. Without information for debuggers, Go links in less time.
func (b *builder) compile(ctx context.Context, batch []binary) error {
	into, err := os.MkdirTemp(b.directory, "linked-")
	if err != nil {
		return fmt.Errorf("create a directory for test binaries: %w", err)
	}
	defer os.RemoveAll(into) //nolint:errcheck // The caller removes the directory around it.
	arguments := []string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", into + "/"}
	if batch[0].race {
		arguments = append(arguments, "-race")
	}
	root := "."
	if inSeparateModule(batch[0].folder) {
		root = separateModule
	}
	for _, one := range batch {
		below, err := filepath.Rel(root, one.folder)
		if err != nil {
			return fmt.Errorf("find %s in its module: %w", one.folder, err)
		}
		arguments = append(arguments, "./"+below)
	}
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = root
	command.Env = append(command.Environ(), b.environment(batch[0].folder)...)
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	err = command.Run()
	b.used.cpu += cpuOf(command)
	if err != nil {
		return fmt.Errorf("build tests: %w\n%s", err, bytes.TrimSpace(printed.Bytes()))
	}
	return b.collect(into, batch)
}

// collect moves binaries to the paths that program returns.
func (b *builder) collect(from string, batch []binary) error {
	for _, one := range batch {
		name := path.Base(one.folder)
		if one.folder == "." {
			name = "einmal"
		}
		if err := os.Rename(filepath.Join(from, name+".test"), b.program(one)); err != nil {
			return fmt.Errorf("collect the test binary of %s: %w", one.folder, err)
		}
	}
	return nil
}

// cpuOf returns the CPU time of a command that has ended, and of all processes that it waited for.
func cpuOf(command *exec.Cmd) time.Duration {
	if command.ProcessState == nil {
		return 0
	}
	return command.ProcessState.UserTime() + command.ProcessState.SystemTime()
}
