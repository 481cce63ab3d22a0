package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
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

// commonFlags are added to GOFLAGS, also for tests that build programs. The Makefile and tools/steps.sh add the first two, so that all of them share
// what Go has compiled. With the last one, Go links in less time, without information for debuggers.
const commonFlags = "-buildvcs=false -trimpath -ldflags=-w"

// A builder links the test binary of each package once. It keeps the binaries: Go links one again only if that would change it.
type builder struct {
	directory string         // For the binaries.
	separate  string         // Flags of the compiler for the separate module.
	numbers   map[string]int // By folder. Folders whose binaries have the same name have different numbers.

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

// newBuilder returns a builder that writes to a directory the binaries of packages in the given folders.
func newBuilder(ctx context.Context, directory string, folders []string) (*builder, error) {
	flags, err := exec.CommandContext(ctx, separateModule+"/build.sh", "--compiler-flags").Output()
	if err != nil {
		return nil, fmt.Errorf("read the compiler flags of %s: %w", separateModule, err)
	}
	result := &builder{
		directory: directory,
		separate:  strings.TrimSpace(string(flags)),
		numbers:   map[string]int{},
		built:     map[binary]error{},
	}
	known := map[string]int{}
	for _, folder := range folders {
		result.numbers[folder] = known[programName(folder)]
		known[programName(folder)]++
	}
	return result, nil
}

// programName returns the name that Go gives the test binary of a package.
func programName(folder string) string {
	if folder == "." {
		return "einmal.test"
	}
	return path.Base(folder) + ".test"
}

// program returns the absolute path of a binary.
func (b *builder) program(of binary) string {
	return filepath.Join(b.place(of), programName(of.folder))
}

// place returns the directory of a binary. Those that one command can build share a directory: they have the same flags and different names.
func (b *builder) place(of binary) string {
	kind := "plain"
	if of.race {
		kind = "race"
	}
	if inSeparateModule(of.folder) {
		kind += "-" + separateModule
	}
	return filepath.Join(b.directory, fmt.Sprintf("%s-%d", kind, b.numbers[of.folder]))
}

// environment returns the variables with which go builds and runs the tests of a folder.
func (b *builder) environment(folder string) []string {
	flags := "GOFLAGS=" + os.Getenv("GOFLAGS") + " " + commonFlags
	if inSeparateModule(folder) {
		return []string{"GOWORK=off", flags + " " + b.separate}
	}
	return []string{flags}
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
	batches := map[string][]binary{}
	for _, one := range missing {
		batches[b.place(one)] = append(batches[b.place(one)], one)
	}
	for _, place := range slices.Sorted(maps.Keys(batches)) {
		b.buildBatch(ctx, batches[place])
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

// compile runs "go test -c" for binaries with the same place. "make check" runs vet.
func (b *builder) compile(ctx context.Context, batch []binary) error {
	place := b.place(batch[0])
	if err := os.MkdirAll(place, 0o750); err != nil {
		return fmt.Errorf("create a directory for test binaries: %w", err)
	}
	arguments := []string{"test", "-c", "-vet=off", "-o", place + "/"}
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
	command := exec.CommandContext(ctx, "go", arguments...) //nolint:gosec // The arguments are folders of the repository.
	command.Dir = root
	command.Env = append(command.Environ(), b.environment(batch[0].folder)...)
	var printed bytes.Buffer
	command.Stdout, command.Stderr = &printed, &printed
	err := command.Run()
	b.used.cpu += cpuOf(command)
	if err != nil {
		return fmt.Errorf("build tests: %w\n%s", err, bytes.TrimSpace(printed.Bytes()))
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
